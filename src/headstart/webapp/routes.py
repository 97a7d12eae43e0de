"""The routes of the page: studies, uploads, commands and predictions.

Routes that change a study are coroutines that do not pause between reading and saving it, so that
requests of two tabs do not overlap.
"""

import re
import secrets
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Body, Depends, Header, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from headstart.arms import ARMS
from headstart.config import StudyConfig
from headstart.data.sources import TABLES, check_kind
from headstart.errors import HeadstartError
from headstart.serve.http import GuardedRoute
from headstart.webapp.live import live_document
from headstart.webapp.preview import look_at
from headstart.webapp.studies import AppStudy, file_name, save_upload, shown_name

READING = ("task", "text_column", "second_column", "label_column")
PLANNING = ("minutes", "seeds", "labels", "arms", "objectives")
BUDGET = re.compile(r"all|[1-9]\d*|\d+(\.\d+)?%")
OPTION = re.compile(r"(^|\s)--[a-z]")
REMARK = re.compile(r" \([^()]*--[a-z][^()]*\)")  # about an option, in brackets
PREDICTIONS = "predictions.csv"
KINDS = ("inspect", "plan", "study", "predict")
LONGEST = 20_000  # characters of a text to try

# What a person at the page can do about an error, by its code; other errors keep their own fix.
FIXES = {
    "text-column": "choose the column of the text under “How to read it”; in a file to predict, "
    "call it as in the data of the study",
    "label-column": "choose the column of the label under “How to read it”",
    "second-column": "choose both text columns under “How to read it”; in a file to predict, call "
    "them as in the data of the study",
    "column-names": "give the file a first row with a different, plain name for each column",
    "encoding": "save the file as UTF-8 and drop it again",
    "no-labels": "drop text without labels as the second file. With labels it is a CSV, TSV, JSON "
    "or Parquet table with a text and a label column, a CoNLL file (.conll) or SQuAD's JSON",
    "no-corpus": "add text without labels, or choose arms that are not pretrained",
    "does-not-fit": "give it more minutes, or choose fewer arms",
    "no-classifier": "make a study with the arm that the report names",
    "token": "open the address that the app printed at its last start",
}


async def find_study(request: Request, study_id: str) -> AppStudy:
    """Return the study that the address names."""
    return request.app.state.studies.find(study_id)


Study = Annotated[AppStudy, Depends(find_study)]


async def find_open(study: Study) -> AppStudy:
    """Return a study whose data and plan can still be changed."""
    if study.job("study").record.is_file():
        raise HeadstartError(
            "this study has started: its data and plan can no longer be changed",
            fix="upload the files again to make another study",
            code="conflict",
        )
    return study


OpenStudy = Annotated[AppStudy, Depends(find_open)]
FileName = Annotated[str, Header(alias="x-file-name", max_length=4_000)]
Given = Annotated[dict[str, Any], Body()]
Document = dict[str, Any]
api = APIRouter(prefix="/api/studies", route_class=GuardedRoute)


@api.get("")
def list_studies(request: Request) -> list[Document]:
    return [summary(study) for study in request.app.state.studies.all()]


@api.post("", status_code=201)
async def create(request: Request, x_file_name: FileName) -> Document:
    given = unquote(x_file_name)
    name = file_name(given)
    if check_kind(Path(name)) not in (*TABLES, "conll"):
        raise HeadstartError("a file with labels is a table", where=name, code="no-labels")
    folder: Path = request.app.state.studies.folder / secrets.token_hex(6)
    (folder / "files").mkdir(parents=True)  # a study once its record is saved
    try:
        path = folder / "files" / name
        await save_upload(request.stream(), path, request.app.state.most_upload)
        preview = await run_in_threadpool(look_at, path)
        AppStudy(folder, shown_name(given), time(), {"data": name}, preview).save()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return document(await find_study(request, folder.name))


@asynccontextmanager
async def received(request: Request, study: AppStudy, given: str) -> AsyncIterator[Path]:
    """Receive a file in a temporary folder of a study."""
    with TemporaryDirectory(prefix=".upload-", dir=study.folder) as place:
        path = Path(place, file_name(unquote(given)))
        await save_upload(request.stream(), path, request.app.state.most_upload)
        yield path


@api.put("/{study_id}/corpus")
async def add_corpus(study: OpenStudy, request: Request, x_file_name: FileName) -> Document:
    async with received(request, study, x_file_name) as path:
        # It may have been changed or started during the upload.
        study = await find_open(await find_study(request, study.folder.name))
        name = f"corpus-{path.name}" if path.name == study.files["data"] else path.name
        if old := study.files.get("corpus"):
            (study.files_folder / old).unlink(missing_ok=True)
        path.replace(study.files_folder / name)
        study.files["corpus"] = name
        study.save()
        study.job("inspect").forget()
        study.job("plan").forget()
    return document(study)


@api.get("/{study_id}")
def show(study: Study) -> Document:
    return document(study)


@api.delete("/{study_id}", status_code=204)
async def delete(study: Study, request: Request) -> None:
    if study.job("study").is_running:
        raise HeadstartError("this study is running", fix="stop it first", code="conflict")
    request.app.state.studies.delete(study)


@api.post("/{study_id}/inspect", status_code=202)
async def inspect(study: OpenStudy, given: Given) -> Document:
    change_settings(study, given, (*READING, "arms"))  # another task has other arms
    study.job("plan").forget()
    study.job("inspect").start(
        ["inspect", *list_arguments(study, READING), "--drop-overlap"], study.files_folder
    )
    return document(study)


@api.post("/{study_id}/plan", status_code=202)
async def plan(request: Request, study: OpenStudy, given: Given) -> Document:
    change_settings(study, given, PLANNING)
    study.job("plan").start([*compare_command(request, study), "--dry-run"], study.files_folder)
    return document(study)


@api.post("/{study_id}/start", status_code=202)
async def start(request: Request, study: Study) -> Document:
    if study.job("study").is_running:
        return document(study)
    for one in request.app.state.studies.all():
        if one.job("study").is_running:
            raise HeadstartError(
                f"another study is running: {one.name}",
                fix="wait until it is finished, or stop it: two at once would both be slow",
                code="conflict",
            )
    if study.state() in ("new", "inspected"):
        raise HeadstartError("this study has no plan yet", fix="make one first", code="conflict")
    study.job("study").start(
        [*compare_command(request, study), f"--plan={study.job('plan').output}"], study.files_folder
    )
    return document(study)


@api.post("/{study_id}/stop", status_code=202)
async def stop(study: Study) -> Document:
    study.job("study").stop()
    return document(study)


@api.get("/{study_id}/live")
def live(study: Study) -> Document:
    return live_document(study.study_folder, running=study.job("study").is_running)


@api.get("/{study_id}/report")
def report(study: Study) -> Response:
    return _send(study.study_folder / "report.html", "there is no report yet")


@api.get("/{study_id}/classifier")
def classifier(study: Study) -> Document:
    return describe_classifier(study.best)


@api.post("/{study_id}/classifier")
def classify(study: Study, texts: Annotated[list[str], Body(embed=True)]) -> Document:
    return predict_texts(study.best, texts)


@api.post("/{study_id}/predictions", status_code=202)
async def predict(study: Study, request: Request, x_file_name: FileName) -> Document:
    async with received(request, study, x_file_name) as path:
        columns = (await run_in_threadpool(look_at, path))["columns"]
        study.job("predict").forget()
        (study.folder / PREDICTIONS).unlink(missing_ok=True)
        folder = study.folder / "predictions"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path.rename(folder / path.name)
    known = [n for n in ("text_column", "second_column") if study.settings.get(n) in columns]
    places = [str(study.best), f"--input={path.name}", f"--output={study.folder / PREDICTIONS}"]
    study.job("predict").start(["predict", *places, *list_options(study.settings, known)], folder)
    return document(study)


@api.get("/{study_id}/predictions")
def predictions(study: Study) -> Response:
    return _send(study.folder / PREDICTIONS, "there are no predictions yet")


def _send(path: Path, missing: str) -> Response:
    if not path.is_file():
        raise HeadstartError(missing, fix="wait until the command has finished")
    return FileResponse(path, filename=path.name)


def change_settings(study: AppStudy, given: dict[str, Any], allowed: Sequence[str]) -> None:
    """Replace some settings of a study; `StudyConfig` checks them. `labels` may be as typed."""
    if unknown := set(given) - set(allowed):
        raise HeadstartError(f"unknown settings: {', '.join(sorted(unknown))[:200]}", code="config")
    given = {name: value for name, value in given.items() if value not in (None, "", [])}
    if isinstance(given.get("labels"), str):
        given["labels"] = [one for one in re.split(r"[\s,;]+", given["labels"]) if one]
        for one in given["labels"]:
            if not BUDGET.fullmatch(one):
                raise HeadstartError(
                    f"“{one[:40]}” is not a label budget",
                    where="Label budgets",
                    fix="write numbers and “all”, such as: 50, 100, all",
                    code="budgets",
                )
    settings = {k: one for k, one in study.settings.items() if k not in allowed} | given
    StudyConfig.create(**{"dataset": [study.files["data"]], "task": study.task, **settings})
    study.settings = settings
    study.save()


def list_options(settings: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Write settings as options. Values follow an equals sign: none can be an option."""
    chosen = {name.replace("_", "-"): settings[name] for name in names if name in settings}
    texts = {name: v if isinstance(v, list) else [v] for name, v in chosen.items()}
    return [f"--{name}={','.join(map(str, value))}" for name, value in texts.items()]


def list_arguments(study: AppStudy, names: Sequence[str]) -> list[str]:
    """Write the files and settings of a study as arguments of `inspect` and `compare`."""
    corpus = [f"--corpus={study.files['corpus']}"] if "corpus" in study.files else []
    options = list_options({"task": study.task, **study.settings}, names)
    return [study.files["data"], *corpus, *options]


def compare_command(request: Request, study: AppStudy) -> list[str]:
    """Write `headstart compare` for a study."""
    options = list_arguments(study, (*READING, *PLANNING))
    places = [f"--out={study.study_folder}", f"--name={study.name}"]
    return ["compare", *options, *places, *request.app.state.extra]


def describe_job(study: AppStudy, kind: str) -> dict[str, Any] | None:
    """Return the document of a job in the page's words."""
    job = study.job(kind).document() or {}
    if "error" in job:
        job["error"] = page_error(job["error"])
    for name in ("warnings", "recommendation"):
        if name in job.get("result", {}):
            job["result"][name] = [REMARK.sub("", line) for line in job["result"][name]]
    return job or None


def page_error(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error's document with what a person at the page can do about it."""
    fix = FIXES.get(error["code"], error["fix"])
    fix = None if fix and OPTION.search(fix) else fix  # the page has no command line
    return {**error, "what": REMARK.sub("", error["what"]), "fix": fix}


def summary(study: AppStudy) -> dict[str, Any]:
    """Describe a study in the list of all."""
    result = (describe_job(study, "study") or {}).get("result", {})
    return {
        "id": study.folder.name,
        "name": study.name,
        "created": study.created,
        "state": study.state(),
        "files": study.files,
        "recommendation": result.get("recommendation", []),
    }


def document(study: AppStudy) -> dict[str, Any]:
    """Describe a study for its page; every tab sees the same."""
    return {
        **summary(study),
        "preview": study.preview,
        "settings": {**study.settings, "task": study.task},
        "arms": [
            {
                "name": arm.name,
                "label": arm.label,
                "description": arm.description,
                "usual": study.task in arm.usual,
            }
            for arm in ARMS.values()
            if study.task in arm.tasks
        ],
        "jobs": {kind: describe_job(study, kind) for kind in KINDS},
        "classifier": study.best.is_dir(),
    }


@lru_cache(maxsize=1)
def open_classifier(folder: Path) -> Any:
    """Open the classifier of a study; the latest one stays in memory."""
    from headstart.run import Run

    if not folder.is_dir():
        raise HeadstartError("this study saved no classifier", code="no-classifier")
    return Run.open(folder)


def describe_classifier(folder: Path) -> dict[str, Any]:
    """Return its task, its labels and the names of the texts that it reads."""
    task = open_classifier(folder).require_task()
    return {"task": task.name, "labels": list(task.labels), "inputs": task.input_names}


def predict_texts(folder: Path, texts: Sequence[str]) -> dict[str, Any]:
    """Return the prediction for a text (two, for pairs and spans) and its explanation."""
    if sum(map(len, texts)) > LONGEST:
        raise HeadstartError(
            f"the text is longer than {LONGEST:,} characters", fix="upload it as a file instead"
        )
    run = open_classifier(folder)
    given = texts[0] if len(texts) == 1 else tuple(texts)
    found = run.predict([given])[0]
    return {**found, "explanation": _explain(run, given) if run.explains else None}


def _explain(run: Any, given: str | tuple[str, ...]) -> list[dict[str, Any]]:
    """Split the text into segments, each with its effect and its share of the strongest effect."""
    effects = sorted(run.explain(given), key=lambda one: (one.part, one.start))
    most = max((abs(one.effect) for one in effects), default=0.0) or 1.0
    segments: list[dict[str, Any]] = []
    for part, text in enumerate([given] if isinstance(given, str) else given):
        place = 0
        segments += [{"text": " | "}] if part else []
        for one in effects:
            if one.part == part and one.start >= place:  # an overlapping neighbour is skipped
                segments.append({"text": text[place : one.start]})
                segments.append(
                    {
                        "text": one.text,
                        "effect": round(one.effect, 4),
                        "share": round(one.effect / most, 4),
                    }
                )
                place = one.end
        segments.append({"text": text[place:]})
    return [segment for segment in segments if segment["text"]]

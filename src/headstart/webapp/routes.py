"""What the page asks of the server: studies, uploads, commands and predictions."""

import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Body, Header, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from headstart.arms import ARMS
from headstart.config import StudyConfig
from headstart.data.sources import find_kind
from headstart.errors import HeadstartError
from headstart.webapp.live import live_document
from headstart.webapp.preview import look_at
from headstart.webapp.studies import (
    AppStudy,
    Studies,
    check_labelled,
    check_size,
    file_name,
    save_upload,
)
from headstart.webapp.trying import Classifiers

FileName = Annotated[str, Header(alias="x-file-name", max_length=4_000)]
Given = Annotated[dict[str, Any], Body()]
READING = ("task", "text_column", "second_column", "label_column")
PLANNING = ("minutes", "seeds", "labels", "arms", "objectives")
BUDGET = re.compile(r"all|[1-9]\d*|\d+(\.\d+)?%")
OPTION = re.compile(r"(^|\s)--[a-z]")
REMARK = re.compile(r" \([^()]*--[a-z][^()]*\)")  # about an option, in brackets
KINDS = ("inspect", "plan", "study", "predict")
# Of predictions, by the kind of the file of texts; others become CSV.
SUFFIXES = {"jsonl": ".jsonl", "json": ".jsonl", "conll": ".conll"}

# What a person at the page can do about an error, by its code; other errors keep their own fix.
FIXES = {
    "text-column": "choose the column of the text under “How to read it”",
    "label-column": "choose the column of the label under “How to read it”",
    "second-column": "choose both text columns under “How to read it”",
    "column-names": "give the file a first row with a different, plain name for each column",
    "encoding": "save the file as UTF-8 and drop it again",
    "no-labels": "drop text without labels as the second file. With labels it is a CSV, TSV, JSON "
    "or Parquet table with a text and a label column, a CoNLL file (.conll) or SQuAD's JSON",
    "no-corpus": "add text without labels, or choose arms that are not pretrained",
    "does-not-fit": "give it more minutes, or choose fewer arms",
    "no-classifier": "take the arm that the report names, with another study",
}
PREDICTION_FIXES = {
    **FIXES,
    "text-column": "call the column of the texts as in the data of the study",
    "second-column": "call the columns of the texts as in the data of the study",
}


def make_routes(studies: Studies, *, most_bytes: int, extra: Sequence[str]) -> APIRouter:
    """Make the routes below `/api`.

    Parameters
    ----------
    studies : of the app's folder.
    most_bytes : of an upload, also when it is decompressed.
    extra : options of every study.
    """
    api, classifiers = APIRouter(prefix="/api/studies"), Classifiers()

    async def save(request: Request, path: Path) -> Path:
        await save_upload(request.stream(), path)
        await run_in_threadpool(check_size, path, most_bytes)
        return path

    @asynccontextmanager
    async def received(request: Request, study: AppStudy, given: str) -> AsyncIterator[Path]:
        """Receive a file in a temporary folder of a study."""
        with TemporaryDirectory(prefix=".upload-", dir=study.folder) as place:
            yield await save(request, Path(place, file_name(unquote(given))))

    def open_study(study_id: str) -> AppStudy:
        """Find a study whose data and plan can still be changed."""
        study = studies.find(study_id)
        if study.started:
            raise HeadstartError(
                "this study has been started: its data and its plan stay as they are",
                fix="drop the files again for another study",
                code="conflict",
            )
        return study

    @api.get("")
    def list_studies() -> list[dict[str, Any]]:
        return [summary(study) for study in studies.all()]

    @api.post("", status_code=201)
    async def create(request: Request, x_file_name: FileName) -> dict[str, Any]:
        given = unquote(x_file_name)
        name = file_name(given)
        check_labelled(name)
        folder = studies.new_folder()
        try:
            path = await save(request, folder / "files" / name)
            preview = await run_in_threadpool(look_at, path)
            return document(studies.add(folder, given, name, preview))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @api.put("/{study_id}/corpus")
    async def add_corpus(study_id: str, request: Request, x_file_name: FileName) -> dict[str, Any]:
        async with received(request, open_study(study_id), x_file_name) as path:
            with studies.lock:
                study = open_study(study_id)  # it may have been started during the upload
                name = path.name
                if name == study.files["data"]:
                    name = f"corpus-{name}"
                if old := study.files.get("corpus"):
                    (study.files_folder / old).unlink(missing_ok=True)
                path.replace(study.files_folder / name)
                study.files["corpus"] = name
                study.save()
                study.job("inspect").forget()
                study.job("plan").forget()
        return document(study)

    @api.get("/{study_id}")
    def show(study_id: str) -> dict[str, Any]:
        return document(studies.find(study_id))

    @api.delete("/{study_id}", status_code=204)
    def delete(study_id: str) -> None:
        with studies.lock:
            study = studies.find(study_id)
            if study.job("study").is_running:
                raise HeadstartError("this study is running", fix="stop it first", code="conflict")
            studies.delete(study)

    @api.post("/{study_id}/inspect", status_code=202)
    def inspect(study_id: str, given: Given) -> dict[str, Any]:
        with studies.lock:
            # Another task has other arms.
            study = change_settings(study_id, given, (*READING, "arms"))
            study.job("plan").forget()
            arguments = ["inspect", *_arguments(study, READING), "--drop-overlap"]
            study.job("inspect").start(arguments, study.files_folder)
        return document(study)

    @api.post("/{study_id}/plan", status_code=202)
    def plan(study_id: str, given: Given) -> dict[str, Any]:
        with studies.lock:
            study = change_settings(study_id, given, PLANNING)
            study.job("plan").start([*compare(study), "--dry-run"], study.files_folder)
        return document(study)

    def change_settings(study_id: str, given: Given, names: Sequence[str]) -> AppStudy:
        study = open_study(study_id)
        study.settings = check_settings(study, given, names)
        study.save()
        return study

    @api.post("/{study_id}/start", status_code=202)
    def start(study_id: str) -> dict[str, Any]:
        with studies.lock:
            study = studies.find(study_id)
            running = [one.name for one in studies.all() if one.job("study").is_running]
            if running and not study.job("study").is_running:
                raise HeadstartError(
                    f"another study is running: {running[0]}",
                    fix="wait until it is finished, or stop it: two at once would both be slow",
                    code="conflict",
                )
            if study.state() in ("new", "inspected"):
                raise HeadstartError(
                    "this study has no plan yet", fix="make one first", code="conflict"
                )
            if not running:
                arguments = [*compare(study), f"--plan={study.job('plan').output}"]
                study.job("study").start(arguments, study.files_folder)
        return document(study)

    def compare(study: AppStudy) -> list[str]:
        options = _arguments(study, (*READING, *PLANNING))
        places = [f"--out={study.study_folder}", f"--name={study.name}"]
        return ["compare", *options, *places, *extra]

    @api.post("/{study_id}/stop", status_code=202)
    def stop(study_id: str) -> dict[str, Any]:
        with studies.lock:
            study = studies.find(study_id)
            study.job("study").stop()
        return document(study)

    @api.get("/{study_id}/live")
    def live(study_id: str) -> dict[str, Any]:
        study = studies.find(study_id)
        return live_document(study.study_folder, running=study.job("study").is_running)

    @api.get("/{study_id}/report")
    def report(study_id: str) -> Response:
        path = studies.find(study_id).study_folder / "report.html"
        if not path.is_file():
            raise HeadstartError("there is no report yet", fix="wait until the study is finished")
        return FileResponse(path, media_type="text/html")

    @api.get("/{study_id}/classifier")
    def classifier(study_id: str) -> dict[str, Any]:
        return classifiers.describe(studies.find(study_id).best)

    @api.post("/{study_id}/classifier")
    def classify(study_id: str, texts: Annotated[list[str], Body(embed=True)]) -> dict[str, Any]:
        return classifiers.predict(studies.find(study_id).best, texts)

    @api.post("/{study_id}/predictions", status_code=202)
    async def predict(study_id: str, request: Request, x_file_name: FileName) -> dict[str, Any]:
        async with received(request, studies.find(study_id), x_file_name) as path:
            columns = (await run_in_threadpool(look_at, path))["columns"]
            with studies.lock:
                study = studies.find(study_id)
                study.job("predict").forget()
                folder = study.folder / "predictions"
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                name = path.name
                if name.lower().startswith("predictions."):  # the name of the result
                    name = f"texts-{name}"
                path.rename(folder / name)
                names = ("text_column", "second_column")
                known = [name for name in names if study.settings.get(name) in columns]
                suffix = SUFFIXES.get(find_kind(path)[0] or "", ".csv")
                output = f"--output=predictions{suffix}"
                options = [*_options(study.settings, known), f"--input={name}", output]
                study.job("predict").start(["predict", str(study.best), *options], folder)
        return document(study)

    @api.get("/{study_id}/predictions")
    def predictions(study_id: str) -> Response:
        found = list((studies.find(study_id).folder / "predictions").glob("predictions.*"))
        if not found:
            raise HeadstartError("there are no predictions yet", fix="drop a file of texts first")
        return FileResponse(found[0], filename=found[0].name)

    return api


def summary(study: AppStudy) -> dict[str, Any]:
    """Describe a study in the list of all."""
    paths = [study.files_folder / name for name in study.files.values()]
    result = (_job(study, "study") or {}).get("result", {})
    return {
        "id": study.id,
        "name": study.name,
        "created": study.created,
        "state": study.state(),
        "files": study.files,
        "bytes": sum(path.stat().st_size for path in paths if path.is_file()),
        "recommendation": result.get("recommendation", []),
    }


def document(study: AppStudy) -> dict[str, Any]:
    """Describe a study for its page; every tab sees the same."""
    arms = [
        {name: getattr(arm, name) for name in ("name", "label", "description")}
        | {"usual": study.task in arm.usual}
        for arm in ARMS.values()
        if study.task in arm.tasks
    ]
    return {
        **summary(study),
        "preview": study.preview,
        "settings": {**study.settings, "task": study.task},
        "arms": arms,
        "jobs": {kind: _job(study, kind) for kind in KINDS},
        "classifier": study.best.is_dir(),
    }


def check_settings(
    study: AppStudy, given: dict[str, Any], allowed: Sequence[str]
) -> dict[str, Any]:
    """Return the settings of a study with some of them replaced by those that were given.

    `StudyConfig` checks them, as it does for the command line. `labels` may be a text, as typed.
    """
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
    kept = {name: value for name, value in study.settings.items() if name not in allowed}
    settings = {**kept, **given}
    StudyConfig.create(**{"dataset": [study.files["data"]], "task": study.task, **settings})
    return settings


def _options(settings: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Write settings as options. Values follow an equals sign: none can be an option."""
    options = {one.name: one.option for one in StudyConfig.settings()}
    chosen = {name: settings[name] for name in names if name in settings}
    texts = {name: v if isinstance(v, list) else [v] for name, v in chosen.items()}
    return [f"{options[name]}={','.join(map(str, value))}" for name, value in texts.items()]


def _arguments(study: AppStudy, names: Sequence[str]) -> list[str]:
    corpus = [f"--corpus={study.files['corpus']}"] if "corpus" in study.files else []
    return [
        study.files["data"],
        *corpus,
        *_options({"task": study.task, **study.settings}, names),
    ]


def _job(study: AppStudy, kind: str) -> dict[str, Any] | None:
    """Return the document of a job in the page's words."""
    job = study.job(kind).document()
    if job is None:
        return None
    if "error" in job:
        job["error"] = page_error(job["error"], PREDICTION_FIXES if kind == "predict" else FIXES)
    for name in ("warnings", "recommendation"):
        if name in job.get("result", {}):
            job["result"][name] = [REMARK.sub("", line) for line in job["result"][name]]
    return job


def page_error(error: dict[str, Any], fixes: dict[str, str] | None = None) -> dict[str, Any]:
    """Return an error's document with what a person at the page can do about it."""
    fix = (FIXES if fixes is None else fixes).get(error["code"], error["fix"])
    fix = None if fix and OPTION.search(fix) else fix  # the page has no command line
    return {**error, "what": REMARK.sub("", error["what"]), "fix": fix}

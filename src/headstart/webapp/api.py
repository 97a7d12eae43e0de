"""What the page asks of the server: studies, their uploads, plans, processes and answers."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from fastapi import APIRouter, Header, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from headstart.errors import HeadstartError
from headstart.webapp.arguments import COLUMNS, compare_arguments, inspect_arguments
from headstart.webapp.commands import CommandJobs
from headstart.webapp.live import live_document, version_of
from headstart.webapp.study_document import (
    PREVIEW,
    full_document,
    short_document,
    study_state,
)
from headstart.webapp.study_process import StudyConflictError, StudyProcesses
from headstart.webapp.trying import Classifiers
from headstart.webapp.uploads import first_rows, receive, suffix_of
from headstart.webapp.workspace import INSPECTION, PLAN, AppStudy, Workspace

UPLOAD_MB = 1_000
FileName = Annotated[str, Header(alias="x-file-name", max_length=4_000)]
Short = Annotated[str, Field(max_length=1_000)]


class Strict(BaseModel):
    """A request without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class Reading(Strict):
    """How the labelled file is read; empty columns are found by their names."""

    task: Literal["classification", "pairs", "multi-label"] = "classification"
    text_column: Short = ""
    second_column: Short = ""
    label_column: Short = ""


class Choices(Strict):
    """What can be changed of a plan; what is empty is decided by the data."""

    minutes: Annotated[float, Field(gt=0, le=100_000)] | None = None
    seeds: Annotated[int, Field(ge=1, le=50)] = 3
    labels: Annotated[str, Field(max_length=200, pattern=r"^[\w ,]*$")] = ""
    arms: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=40)] = []
    objective: Literal["", "causal", "masked", "causal,masked"] = ""


class TextQuestion(Strict):
    """A text to classify; two where the task is about pairs."""

    texts: Annotated[list[str], Field(min_length=1, max_length=2)]


@dataclass
class Services:
    """What the requests share."""

    workspace: Workspace
    extra: Sequence[str] = ()  # options for every study
    upload_mb: int = UPLOAD_MB
    jobs: CommandJobs = field(default_factory=CommandJobs)
    classifiers: Classifiers = field(default_factory=Classifiers)
    once: set[str] = field(default_factory=set)  # keys that open the page one time

    def __post_init__(self) -> None:
        self.processes = StudyProcesses(self.workspace)


def make_api(services: Services) -> APIRouter:
    """The routes below `/api`."""
    api = APIRouter(prefix="/api/studies")
    workspace, processes, jobs = services.workspace, services.processes, services.jobs

    def document(study_id: str) -> dict[str, Any]:
        return full_document(workspace.find(study_id), processes, jobs)

    def unstarted(study: AppStudy) -> None:
        if study.process is not None:
            raise StudyConflictError(
                "this study has been started, and its data and plan stay as they are",
                fix="begin another one",
            )

    @api.get("")
    def list_studies() -> list[dict[str, Any]]:
        return [short_document(study, processes) for study in workspace.all()]

    @api.post("", status_code=201)
    async def create(request: Request, x_file_name: FileName) -> dict[str, Any]:
        given = unquote(x_file_name)
        study_id, folder = workspace.new_folder()
        try:
            upload = await receive(
                request.stream(), folder, "data", given, megabytes=services.upload_mb
            )
            preview = await run_in_threadpool(first_rows, folder / upload["file"], upload["name"])
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        study = workspace.add(study_id, given, {"data": upload})
        study.save(PREVIEW, preview)
        reading = Reading(**{name: preview.get(name, "") for name in COLUMNS}).model_dump()
        workspace.change(study_id, lambda one: one.reading.update(reading))
        return document(study_id)

    @api.put("/{study_id}/corpus")
    async def add_corpus(study_id: str, request: Request, x_file_name: FileName) -> dict[str, Any]:
        study = workspace.find(study_id)
        unstarted(study)
        with TemporaryDirectory(prefix=".upload-", dir=study.folder) as place:
            upload = await receive(
                request.stream(),
                Path(place),
                "corpus",
                unquote(x_file_name),
                megabytes=services.upload_mb,
            )

            def take(one: AppStudy) -> None:
                unstarted(one)  # nor has it been started during the upload
                Path(place, upload["file"]).replace(one.folder / upload["file"])
                one.files["corpus"] = upload

            workspace.change(study_id, take)
        jobs.stop(study_id)
        study.forget(INSPECTION, PLAN)
        return document(study_id)

    @api.get("/{study_id}")
    def show(study_id: str, request: Request) -> Response:
        return _unless_known(request, document(study_id))

    @api.delete("/{study_id}", status_code=204)
    def delete(study_id: str) -> None:
        with processes.at_rest(study_id) as study:
            jobs.stop(study_id)
            services.classifiers.forget(study.study_folder / "best")
            workspace.delete(study_id)

    @api.post("/{study_id}/inspect", status_code=202)
    def inspect(study_id: str, reading: Reading) -> dict[str, Any]:
        def change(study: AppStudy) -> None:
            unstarted(study)
            study.reading = reading.model_dump()
            study.forget(INSPECTION, PLAN)

        study = workspace.change(study_id, change)
        jobs.stop(study_id)
        study.forget(INSPECTION, PLAN)  # one may have ended meanwhile
        jobs.start(
            study_id,
            "inspect",
            inspect_arguments(study),
            study.folder,
            lambda found: study.save(INSPECTION, found),
        )
        return document(study_id)

    @api.post("/{study_id}/plan", status_code=202)
    def plan(study_id: str, choices: Choices) -> dict[str, Any]:
        def change(study: AppStudy) -> None:
            unstarted(study)
            study.choices = choices.model_dump()
            study.forget(PLAN)

        study = workspace.change(study_id, change)
        jobs.stop(study_id, "plan")
        study.forget(PLAN)  # one may have ended meanwhile
        arguments = [*compare_arguments(study, services.extra), "--dry-run"]
        jobs.start(study_id, "plan", arguments, study.folder, lambda found: study.save(PLAN, found))
        return document(study_id)

    @api.post("/{study_id}/start", status_code=202)
    def start(study_id: str) -> dict[str, Any]:
        study = workspace.find(study_id)
        if study_state(study, processes)[0] in ("new", "inspected"):
            raise StudyConflictError("this study has no plan yet", fix="make one first")
        planned = [*compare_arguments(study, services.extra), f"--plan={study.folder / PLAN}"]
        arguments = study.arguments or planned
        processes.start(study_id, arguments)
        return document(study_id)

    @api.post("/{study_id}/stop", status_code=202)
    def stop(study_id: str) -> dict[str, Any]:
        processes.stop(study_id)
        return document(study_id)

    @api.get("/{study_id}/live")
    def live(study_id: str, request: Request) -> Response:
        study = workspace.find(study_id)
        running = processes.is_running(study)
        version = f'"{version_of(study.study_folder)}-{running}"'
        if request.headers.get("if-none-match") == version:
            return Response(status_code=304, headers={"etag": version})
        found = live_document(study.study_folder, running=running)
        return JSONResponse(found, headers={"etag": version})

    @api.get("/{study_id}/report")
    def report(study_id: str, download: bool = False) -> Response:
        study = workspace.find(study_id)
        if not study.report.is_file():
            raise HeadstartError("there is no report yet")
        # The page's own policy lets its one script run and nothing else.
        headers = {"content-security-policy": "frame-ancestors 'none'"}
        name = "report.html" if download else None
        return FileResponse(study.report, media_type="text/html", headers=headers, filename=name)

    @api.get("/{study_id}/classifier")
    def about_classifier(study_id: str) -> dict[str, Any]:
        return services.classifiers.about(workspace.find(study_id).study_folder / "best")

    @api.post("/{study_id}/answer")
    def answer(study_id: str, question: TextQuestion) -> dict[str, Any]:
        folder = workspace.find(study_id).study_folder / "best"
        return services.classifiers.answer(folder, question.texts)

    @api.post("/{study_id}/predictions", status_code=202)
    async def predict(study_id: str, request: Request, x_file_name: FileName) -> dict[str, Any]:
        study, given = workspace.find(study_id), unquote(x_file_name)
        jobs.stop(study_id, "predict")
        folder = study.folder / "predictions"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        upload = await receive(
            request.stream(), folder, "input", given, megabytes=services.upload_mb
        )
        source = folder / upload["file"]
        preview = await run_in_threadpool(first_rows, source, upload["name"])
        columns = preview["columns"]
        _check_texts(study, columns, preview["text_column"])
        arguments = ["predict", str(study.study_folder / "best"), f"--input={source}"]
        arguments.append(f"--output={folder / 'predictions'}{suffix_of(upload['file'])}")
        for name in ("text_column", "second_column"):
            if (column := study.reading.get(name)) in columns:
                arguments.append(f"--{name.replace('_', '-')}={column}")
        jobs.start(study_id, "predict", arguments, folder, lambda found: None)
        return document(study_id)

    @api.get("/{study_id}/predictions")
    def predictions(study_id: str) -> Response:
        folder = workspace.find(study_id).folder / "predictions"
        found = list(folder.glob("predictions.*"))
        if not found:
            raise HeadstartError("there are no predictions yet")
        return FileResponse(found[0], filename=found[0].name)

    return api


def _check_texts(study: AppStudy, columns: Sequence[str], found: str) -> None:
    """Refuse a table without a column of texts, in words that the page can show."""
    own = study.reading.get("text_column", "")
    if columns and not found and own not in columns:
        listed = ", ".join(f"'{name[:40]}'" for name in columns[:12])
        raise HeadstartError(
            f"which column holds the texts is not clear; the columns are {listed}",
            fix=f"call it '{own}', as in {study.files['data']['name']}",
        )


def _unless_known(request: Request, found: dict[str, Any]) -> Response:
    """The document, or only the word that the page has it already."""
    response = JSONResponse(found)
    version = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:24]}"'
    if request.headers.get("if-none-match") == version:
        return Response(status_code=304, headers={"etag": version})
    response.headers["etag"] = version
    return response

"""The OpenAPI document, and a plain page of it at `/docs` that loads nothing from anywhere."""

import json
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from headstart.files import installed_version
from headstart.serve.model import ServedModel
from headstart.serve.schemas import PredictRequest

REF = "#/components/schemas/{model}"
BODIES = {"predict": PredictRequest, "models": PredictRequest}
ABOUT = "A text model over HTTP, in the form of Hugging Face's pipelines (`/predict`)."
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886; border-radius: 6px; }
h2 code { font-size: 1.05em; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .1rem 1rem .1rem 0; }
"""


def openapi_document(app: FastAPI, model: ServedModel, *, token: bool) -> dict[str, Any]:
    """The document of the routes, with the bodies that they read themselves."""
    document = get_openapi(
        title=f"headstart: {model.name}",
        version=installed_version(),
        description=ABOUT,
        routes=app.routes,
    )
    _, schemas = models_json_schema([(PredictRequest, "validation")], ref_template=REF)
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas["$defs"])
    for path in document["paths"].values():
        for operation in path.values():
            kind = BODIES.get(operation["operationId"])
            if kind is not None:
                content = {"schema": {"$ref": REF.format(model=kind.__name__)}}
                body = {"required": True, "content": {"application/json": content}}
                operation["requestBody"] = body
            for parameter in operation.get("parameters", []):
                parameter["schema"] = {"type": "string", "enum": [model.name]}
    if token:
        scheme = {"type": "http", "scheme": "bearer"}
        document["components"]["securitySchemes"] = {"token": scheme}
        document["security"] = [{"token": []}]
    return document


def docs_page(document: dict[str, Any], model: ServedModel) -> str:
    """The document as a page of HTML without scripts."""
    sample = json.dumps({"inputs": model.sample()}, ensure_ascii=False)
    labels = ", ".join(model.labels[:50]) or "none"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{escape(document['info']['title'])}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(document['info']['title'])}</h1>",
        f"<p>Task: {escape(model.task)}. Labels: {escape(labels)}.</p>",
        "<pre>curl http://ADDRESS/predict \\\n"
        "    -H 'Content-Type: application/json' \\\n"
        f"    -d '{escape(sample)}'</pre>",
        "<p>The whole description, for machines: <a href='openapi.json'>openapi.json</a></p>",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(f"<p>{escape(operation.get('description') or operation['summary'])}</p>")
            rows = [
                f"<tr><td>{status}</td><td>{escape(answer['description'])}</td></tr>"
                for status, answer in operation["responses"].items()
            ]
            parts.append(f"<table><tbody>{''.join(rows)}</tbody></table>")
    return "".join([*parts, "</body></html>"])

"""The v2 inference protocol (KServe, Triton, OpenVINO, MLServer): tensors with names and shapes.

A text is an element of a `BYTES` tensor. Requests and answers are JSON; the binary extension is
not spoken.
"""

import json
from typing import Any

from headstart.files import installed_version
from headstart.serve.model import ServedModel
from headstart.serve.replies import RefusedError
from headstart.serve.service import Service

PLATFORM = "headstart"


def server_metadata() -> dict[str, Any]:
    """What `GET /v2` says."""
    return {"name": "headstart", "version": installed_version(), "extensions": []}


def model_metadata(model: ServedModel) -> dict[str, Any]:
    """What `GET /v2/models/NAME` says: the tensors that go in and come out."""
    return {
        "name": model.name,
        "versions": ["1"],
        "platform": PLATFORM,
        "inputs": [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in model.fields],
        "outputs": [
            {"name": name, "datatype": kind, "shape": [-1, *more]}
            for name, (kind, more) in _outputs(model).items()
        ],
    }


async def infer(service: Service, content: Any) -> dict[str, Any]:
    """The answer to `POST /v2/models/NAME/infer`."""
    if not isinstance(content, dict):
        raise RefusedError(422, 'a request has the form {"inputs": [{"name": …}]}')
    name = content.get("id", "")
    if not isinstance(name, str):
        raise RefusedError(422, "the id is no string", where="id")
    texts, places = _read_inputs(content.get("inputs"), service.model.fields)
    fields = service.model.fields
    one = len(fields) == 1
    inputs = [row[0] if one else dict(zip(fields, row, strict=True)) for row in texts]
    wanted = _wanted(content.get("outputs"), service.model)
    model, _, answers = await service.ask(inputs, places=places)
    columns = [_column(model, output, answers) for output in wanted if output in _outputs(model)]
    return {
        **({"id": name} if name else {}),
        "model_name": model.name,
        "model_version": "1",
        "outputs": columns,
    }


def _outputs(model: ServedModel) -> dict[str, tuple[str, list[int]]]:
    """The tensors of an answer: datatype, and the sizes behind the number of texts."""
    if model.task == "spans":
        whole = {"start": ("INT64", list[int]()), "end": ("INT64", list[int]())}
        return {"answer": ("BYTES", []), "probability": ("FP64", []), **whole}
    if model.task == "tagging":
        return {"entities": ("BYTES", []), "words": ("BYTES", []), "tags": ("BYTES", [])}
    if model.explains:
        labels = [len(model.labels)]
        name = "labels" if model.task == "multi-label" else "label"
        return {name: ("BYTES", []), "probabilities": ("FP64", labels)}
    return {"answer": ("BYTES", [])}  # a task of another package: JSON


def _column(model: ServedModel, name: str, answers: list[dict[str, Any]]) -> dict[str, Any]:
    kind, more = _outputs(model)[name]
    data: list[Any] = []
    for answer in answers:
        value = answer.get(name, answer)
        if name == "probabilities":
            data += value.values()
        elif kind == "INT64":
            data.append(-1 if value is None else value)  # no answer in this text
        elif kind == "BYTES" and not isinstance(value, str):
            data.append("" if value is None else json.dumps(value, ensure_ascii=False))
        else:
            data.append(value)
    return {"name": name, "datatype": kind, "shape": [len(answers), *more], "data": data}


def _wanted(given: Any, model: ServedModel) -> list[str]:
    """The outputs that a request names; by default all."""
    there = list(_outputs(model))
    if given is None or given == []:
        return there
    if not isinstance(given, list):
        raise RefusedError(422, "the outputs are a list", where="outputs")
    for number, one in enumerate(given):
        if not isinstance(one, dict) or one.get("name") not in there:
            raise RefusedError(
                422,
                f"there is no such output; there are {', '.join(there)}",
                where=f"outputs[{number}].name",
            )
    return [one["name"] for one in given]


def _read_inputs(given: Any, fields: tuple[str, ...]) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The texts of each row, and what messages call it."""
    if not isinstance(given, list) or not given:
        raise RefusedError(422, "the inputs are a list of tensors", where="inputs")
    columns: dict[str, tuple[int, list[Any]]] = {}
    for number, tensor in enumerate(given):
        place = f"inputs[{number}]"
        if not isinstance(tensor, dict):
            raise RefusedError(422, "a tensor is an object", where=place)
        name = tensor.get("name")
        # With one text per row, what its tensor is called does not matter.
        known = fields[0] if len(fields) == len(given) == 1 else name
        if not isinstance(name, str) or known not in fields or known in columns:
            raise RefusedError(
                422, f"the inputs are {' and '.join(fields)}, once each", where=f"{place}.name"
            )
        columns[known] = (number, _read_tensor(tensor, place))
    if missing := [name for name in fields if name not in columns]:
        raise RefusedError(422, f"the input {missing[0]} is missing", where="inputs")
    if len({len(data) for _, data in columns.values()}) > 1:
        raise RefusedError(422, "the inputs have different lengths", where="inputs")
    rows = list(zip(*(columns[name][1] for name in fields), strict=True))
    first = columns[fields[0]][0]
    return rows, [f"inputs[{first}].data[{row}]" for row in range(len(rows))]


def _read_tensor(tensor: dict[str, Any], place: str) -> list[Any]:
    if tensor.get("datatype") != "BYTES":
        raise RefusedError(422, "texts have the datatype BYTES", where=f"{place}.datatype")
    data = tensor.get("data")
    if not isinstance(data, list) or not data:
        raise RefusedError(422, "the data is a list of texts", where=f"{place}.data")
    if all(isinstance(one, list) and len(one) == 1 for one in data):
        data = [one[0] for one in data]
    shape = tensor.get("shape")
    if shape not in ([len(data)], [len(data), 1]) or any(type(size) is not int for size in shape):
        raise RefusedError(
            422, f"the shape of these texts is [{len(data)}]", where=f"{place}.shape"
        )
    return data

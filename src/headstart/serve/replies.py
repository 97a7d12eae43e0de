"""What goes back to a client: JSON, and refusals that say what, where and how to fix it.

Nothing else leaves: no path of this machine, no traceback.
"""

import json
from typing import Any

from starlette.responses import Response

JSON = "application/json"


class RefusedError(Exception):
    """A request that gets no answer but this.

    Parameters
    ----------
    status : of HTTP.
    error : what is wrong, in a sentence.
    where : the place in the request, as `inputs[3].text`.
    reason : the word under which it is counted.
    """

    def __init__(
        self,
        status: int,
        error: str,
        *,
        where: str | None = None,
        fix: str | None = None,
        reason: str = "invalid",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.where = where
        self.fix = fix
        self.reason = reason
        self.headers = headers

    def response(self) -> Response:
        """The error as Hugging Face's servers and the v2 protocol put it: `{"error": "…"}`."""
        parts = {"error": self.error, "where": self.where, "fix": self.fix}
        content = {name: value for name, value in parts.items() if value is not None}
        return json_response(content, self.status, self.headers)


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """JSON in UTF-8; NaN is refused, because it is no JSON."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a surrogate pair can come back from a request's own words; JSON has an escape for it.
    data = body.encode("utf-8", errors="backslashreplace")
    return Response(data, status, headers, JSON)


def internal_error() -> RefusedError:
    """A bug of ours, as a client sees it; a new object each time, because tracebacks grow."""
    return RefusedError(500, "the server could not answer this; its log says why", reason="error")


def read_json(body: bytes) -> Any:
    """The request's JSON document."""
    try:
        return json.loads(body)
    except RecursionError:
        raise RefusedError(400, "the JSON is nested too deeply") from None
    except ValueError as error:
        place = None
        if isinstance(error, json.JSONDecodeError):
            place = f"line {error.lineno}, column {error.colno}"
        raise RefusedError(
            400, "the body is no JSON", where=place, fix='send {"inputs": "…"}'
        ) from None

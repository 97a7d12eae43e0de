"""Who may talk to the app: pages of its own origin, opened with the key of its folder.

A local server is within reach of every page in the user's browser and of every user of the machine.
So the Host must be the loopback address (a foreign name that points to it is refused), a cookie
must hold the key, and what changes anything must come from our own page: its Origin, and a token
that only our page can read.
"""

import hashlib
import hmac
from urllib.parse import parse_qs

from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE = ("GET", "HEAD")
MOST_JSON = 1_000_000  # bytes of a request that is no upload
UPLOAD = b"x-file-name"  # the header that every upload has
TOKEN = b"x-headstart-token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


class PageGuard:
    """Middleware that lets only the app's own page through.

    Parameters
    ----------
    app : what is guarded.
    key : the secret of the app's folder.
    port : where the server listens.
    once : keys that open the page one time, in place of the secret.
    """

    def __init__(self, app: ASGIApp, *, key: str, port: int, once: set[str] | None = None) -> None:
        self.app, self.once = app, set() if once is None else once
        self.key, self.token = key, csrf_token(key)
        self.cookie = f"headstart-{port}"  # cookies do not tell ports apart
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        refusal = self._enter(scope, headers) or self._refusal(scope, headers)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [(k, v) for k, v in HEADERS.items() if k not in given]
                if b"cache-control" not in given:
                    more.append((b"cache-control", b"no-cache"))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await (refusal or self.app)(scope, receive, guarded)

    def _enter(self, scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
        """The printed address: its key becomes a cookie, and leaves the address."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("key", [])
        if scope["path"] != "/" or not given or not self._is_host(headers):
            return None
        used = {one for one in self.once if _equal(given[0], one)}
        if not used and not _equal(given[0], self.key):
            return None
        self.once -= used
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(
            self.cookie, self.key, httponly=True, samesite="lax", max_age=31_536_000
        )
        return response

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
        if not self._is_host(headers):
            return _refuse("this address is not the app's own", 421)
        if not _equal(self._cookie(headers.get(b"cookie", b"")), self.key):
            words = "Open the address that `headstart app` printed: it ends in the key of this app."
            return PlainTextResponse(words + "\n", status_code=403)
        if headers.get(b"sec-fetch-site", b"same-origin") == b"cross-site":
            return _refuse("another site's page cannot use the app", 403)
        if scope["method"] in SAFE:
            return None
        origins = {f"http://{host}" for host in self.hosts}
        if headers.get(b"origin", b"").decode("latin-1") not in origins:
            return _refuse("only the app's own page can change anything", 403)
        if not _equal(headers.get(TOKEN, b"").decode("latin-1"), self.token):
            return _refuse("this page is older than the app: reload it", 403)
        length = headers.get(b"content-length", b"0")
        too_long = not length.isdigit() or int(length) > MOST_JSON
        if UPLOAD not in headers and (too_long or b"transfer-encoding" in headers):
            return _refuse("the request is too large", 413)
        return None

    def _is_host(self, headers: dict[bytes, bytes]) -> bool:
        return headers.get(b"host", b"").decode("latin-1") in self.hosts

    def _cookie(self, header: bytes) -> str:
        # Not `SimpleCookie`: another server's odd cookie, which comes along, would hide ours.
        return cookie_parser(header.decode("latin-1")).get(self.cookie, "")


def csrf_token(key: str) -> str:
    """What our own page sends with every change; made from the key, which it cannot show."""
    return hmac.new(key.encode(), b"headstart app token", hashlib.sha256).hexdigest()


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _refuse(what: str, status: int) -> Response:
    return JSONResponse({"error": {"what": what, "where": None, "fix": None}}, status_code=status)

"""The settings of a server, the address it listens at, and its token.

Nothing here needs the extra `serve`.
"""

import ipaddress
import os
import socket
from dataclasses import dataclass
from typing import Any, ClassVar

from headstart.config import Config, setting
from headstart.errors import HeadstartError

TOKEN = "HEADSTART_TOKEN"
READ_SECONDS = 10.0  # for the first request of a connection, and for the body of each
# Requests stay here, whatever the environment says about OpenTelemetry.
NO_TELEMETRY: Any = dict.fromkeys(("tracing", "metrics", "logs", "auto_configure"), False)


@dataclass(kw_only=True)
class ServeConfig(Config):
    """The settings of `headstart serve`; the token itself is not one, `read_token` reads it."""

    command: ClassVar[str] = "serve"

    host: str = setting("127.0.0.1", "The address to listen at.", panel="Output")
    port: int = setting(
        8000, "The port; 0 finds a free one.", minimum=0, maximum=65_535, panel="Output"
    )
    token: bool = setting(
        True, f"Require a token (${TOKEN}) if other machines can connect.", panel="Output"
    )
    workers: int = setting(1, "Server processes.", minimum=1, maximum=512, panel="Machine")
    threads: int | None = setting(
        None,
        "Batches computed at the same time; by default one per core.",
        minimum=1,
        maximum=512,
        panel="Machine",
    )
    queue: int = setting(1_024, "Texts that may wait; more are rejected.", minimum=1, advanced=True)
    max_bytes: int = setting(1_048_576, "Largest request, in bytes.", minimum=1, advanced=True)
    max_texts: int = setting(256, "Largest request, in texts.", minimum=1, advanced=True)
    deadline: float = setting(30.0, "Seconds that a request may take.", above=0, advanced=True)

    def problems(self) -> list[str]:
        """Describe settings that do not go together; an unprotected address is one of them."""
        found = []
        if self.max_texts > self.queue:
            found.append(
                f"a request of --max-texts {self.max_texts:,} does not fit --queue {self.queue:,}"
            )
        if self.read_token() is None and self.token and not is_loopback(self.host):
            found.append(
                f"{self.host} can be reached from other machines, and no token is set: set {TOKEN} "
                "(openssl rand -hex 32 makes one), or allow everybody with --no-token"
            )
        return found

    def read_token(self) -> str | None:
        """Read the token from the environment; every user can read a command line."""
        token = os.environ.get(TOKEN)
        if token is None:
            return None
        if not token.strip() or not token.isascii() or not token.isprintable():
            raise HeadstartError(
                "the token is empty, or has characters that HTTP headers cannot carry",
                fix="use letters, digits and punctuation: openssl rand -hex 32 makes one",
                code="config",
            )
        return token


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address; a name counts with all of its addresses."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise HeadstartError(
            f"there is no address {host!r}", fix="use --host 127.0.0.1", code="config"
        ) from None
    return all(ipaddress.ip_address(str(entry[4][0])).is_loopback for entry in found)


def bind(host: str, port: int) -> socket.socket:
    """Listen at an address; one that cannot be used is one message."""
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2_048
        )
    except OSError as error:
        raise HeadstartError(
            f"{host}:{port} cannot be used: {error.strerror}",
            fix="choose another --port (0 finds a free one), or stop what listens there",
            code="address",
        ) from None
    # Opened again with the number of its protocol: without it, asyncio leaves Nagle's algorithm
    # on, which takes 40 ms per request.
    return socket.socket(fileno=listening.detach())


def address_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket, as this machine can open it."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

"""What a server is told at its start: address, limits, and who may ask."""

import ipaddress
import socket
from dataclasses import dataclass, field
from typing import Any

from headstart.config import check_number
from headstart.errors import HeadstartError

# Requests stay here, whatever the environment says about OpenTelemetry.
NO_TELEMETRY: Any = dict.fromkeys(("tracing", "metrics", "logs", "auto_configure"), False)


@dataclass(frozen=True)
class ServeSettings:
    """Everything that can be set; a problem is one message that names the option.

    Parameters
    ----------
    token : what clients send as `Authorization: Bearer …`; without one, anyone who reaches the
        address may ask.
    no_token : whether an address that other machines reach may do without one.
    queue : texts that may wait for the model; a request that does not fit is refused with 429.
    max_bytes, max_texts, max_tokens : of one request.
    deadline : seconds from a request's last byte to its answer.
    read_seconds : how long a client may take to send its request.
    threads : batches that the model runs at the same time; by default one per core, shared out
        among the workers.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int | None = None
    token: str | None = field(default=None, repr=False)
    no_token: bool = False
    queue: int = 1_024
    max_bytes: int = 1_048_576
    max_texts: int = 256
    max_tokens: int = 65_536
    deadline: float = 30.0
    read_seconds: float = 10.0

    def check(self) -> None:
        """Refuse what cannot be, before anything is opened."""
        for name in ("workers", "queue", "max_bytes", "max_texts", "max_tokens"):
            check_number(name, getattr(self, name), minimum=1)
        if self.threads is not None:
            check_number("threads", self.threads, minimum=1)
        if not 0 <= self.port <= 65_535:
            raise HeadstartError(f"--port is {self.port}; it must lie between 0 and 65535")
        for name in ("deadline", "read_seconds"):
            check_number(name, getattr(self, name), minimum=0.001)
        if self.max_texts > self.queue:
            raise HeadstartError(
                f"--max-texts is {self.max_texts:,} and --queue {self.queue:,}: a request with so "
                "many texts could never wait for its turn",
                fix="give a larger --queue or a smaller --max-texts",
            )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise HeadstartError(
                "the token has characters that HTTP headers cannot carry",
                fix="use letters, digits and punctuation: openssl rand -hex 32 makes one",
            )
        if self.token is not None and not self.token.strip():
            raise HeadstartError("the token is empty", fix="openssl rand -hex 32 makes one")
        if self.token is None and not self.no_token and not is_loopback(self.host):
            raise HeadstartError(
                f"{self.host} can be reached from other machines, and no token is set: anyone "
                "could ask",
                fix="set HEADSTART_TOKEN (openssl rand -hex 32 makes one), or say --no-token",
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address; a name counts with all of its addresses."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        raise HeadstartError(
            f"there is no address called {host!r}", fix="use --host 127.0.0.1"
        ) from None
    return all(ipaddress.ip_address(str(entry[4][0])).is_loopback for entry in found)

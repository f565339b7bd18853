"""Answers the probes of an orchestrator over HTTP, from a thread: a blocked event loop is told.

It shows counts and nothing of any job, and serves nothing else.
"""

from __future__ import annotations

import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, ClassVar, Self

import msgspec

from headrace.errors import InvalidOption
from headrace.forks import keep
from headrace.guard import Guard
from headrace.worker.vitals import Vitals

LOOK_S = 0.25
"""Time between looks whether the worker is ready, which `/startupz` remembers."""

CLIENT_TIMEOUT_S = 5.0
"""How long a client may take to send its request."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What every answer's body says.

    Attributes:
        ok: what was asked for; the status is 200 if it is true, else 503.
        live: the event loop turns.
        ready: the worker consumes, is not stopping, and its loop turns.
        started: it has been ready.
        active: attempts that run.
        stuck: handlers that go on although they were stopped and given up.
        lag_ms: how late the event loop was when it was last asked.
        concurrency: attempts at once, at most.
    """

    ok: bool
    live: bool
    ready: bool
    started: bool
    active: int
    stuck: int
    lag_ms: int
    concurrency: int


class HealthServer:
    """Listens from the moment that it is made; answers inside its ``with`` block.

    Args:
        worker: whose health: a worker's, or that of all workers of a supervisor.
        host: the address to listen on, default all of this machine's, IPv4 and IPv6.
        port: 0 to 65,535; 0 takes a free one, which ``port`` then names.

    Raises:
        InvalidOption: it can't listen there.
    """

    def __init__(self, worker: Vitals, *, host: str | None = None, port: int) -> None:
        self._worker = worker
        self._has_started = False
        self._is_over = False
        if not 0 <= port <= 65_535:
            raise InvalidOption(f"health_port={port} is out of bounds: use 0 to 65,535")
        try:
            self._server = _Server(self, host, port)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise InvalidOption(
                f"the health port {port} can't be opened on {host or 'all addresses'}: {why}: "
                "choose another, or another address"
            ) from error
        keep(self._server.socket)  # a fork that stays would keep the port
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=Guard().keep_thread,
            args=("health", self._serve),
            name="headrace-health",
            daemon=True,
        )

    def _serve(self) -> None:
        if not self._is_over:
            self._server.serve_forever(LOOK_S)

    def look(self) -> None:
        """Remember that the worker is ready, if it is."""
        self._has_started = self._has_started or self._is_ready

    def answer(self, path: str) -> Health | None:
        """Return what a probe is told, None if there is no such probe."""
        self.look()
        live, ready = self._worker.is_alive, self._is_ready
        asked = {"/livez": live, "/readyz": ready, "/startupz": self._has_started}
        if path not in asked:
            return None
        return Health(
            ok=asked[path],
            live=live,
            ready=ready,
            started=self._has_started,
            active=self._worker.active,
            stuck=self._worker.stuck,
            lag_ms=round(self._worker.loop_lag * 1000),
            concurrency=self._worker.concurrency,
        )

    @property
    def _is_ready(self) -> bool:
        return self._worker.is_alive and self._worker.is_ready

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over = True
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    # A client that is slow to send must not keep the process from ending.
    daemon_threads = True
    block_on_close = False

    def __init__(self, health: HealthServer, host: str | None, port: int) -> None:
        self.health = health
        is_dual = host is None and socket.has_dualstack_ipv6()
        found = socket.getaddrinfo(
            "::" if is_dual else host,
            port,
            family=socket.AF_INET6 if is_dual else socket.AF_UNSPEC,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
        self.address_family, address = found[0][0], found[0][4]
        self._is_dual = is_dual
        super().__init__((str(address[0]), port), _Handler)

    def server_bind(self) -> None:
        if self._is_dual:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Not HTTPServer's own: that one asks DNS for this machine's name, which may take seconds.
        TCPServer.server_bind(self)

    def service_actions(self) -> None:
        self.health.look()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is none of the worker's business."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout: ClassVar[float] = CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        found = self.server.health.answer(self.path.partition("?")[0])
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(HTTPStatus.OK if found.ok else HTTPStatus.SERVICE_UNAVAILABLE, found)

    do_HEAD = do_GET

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer in JSON; what the base class calls not implemented is a method for no path."""
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.close_connection = True
        self._send(status, {"ok": False, "error": status.phrase})

    def _send(self, status: HTTPStatus, content: Health | dict[str, Any]) -> None:
        body = msgspec.json.encode(content)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """Name the program, and no version to look up holes of."""
        return "headrace"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: probes come every few seconds."""

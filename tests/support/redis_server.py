"""A real redis-server of the tests' own, which can be killed, paused and started again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.ports import HOST, held_port
from tests.support.processes import dying_with_parent
from tests.support.until import patience

START_SECONDS = 10
STOP_SECONDS = 5
POLL_SECONDS = 0.005
PORT_TRIES = 5


class RedisServer:
    """A server on a free loopback port, with a directory of its own that lasts until `close`.

    Args:
        arguments: passed to redis-server as they are, such as ``"--maxmemory", "20mb"``.
        appendonly: keep an append-only file, so that a restart finds the data again.
        under: a program and its arguments that run redis-server in their place, such as valgrind.
    """

    def __init__(
        self, *arguments: str, appendonly: bool = False, under: Sequence[str] = ()
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="headrace-redis-"))
        self._arguments = arguments
        self._appendonly = appendonly
        self._under = under
        self._process: subprocess.Popen[bytes] | None = None
        self._holder: socket.socket | None = None
        self.port = 0
        try:
            self._start_on_free_port()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Its address as a redis:// URL."""
        return f"redis://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._running().pid

    @property
    def log(self) -> str:
        """What the server has written, over all its starts."""
        return (self.directory / "redis.log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, on the same port and data as before, and wait until it has loaded them."""
        self.launch()
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def launch(self, *arguments: str) -> None:
        """Start it with more arguments, and don't wait for it; see `is_ready`."""
        if self._process is not None:
            raise RuntimeError(f"the server on port {self.port} is running: stop() it first")
        # fmt: off
        command = [
            *self._under, redis_server_path(), "--bind", HOST, "--port", str(self.port),
            "--save", "", "--dir", str(self.directory),
            "--appendonly", "yes" if self._appendonly else "no",
            "--enable-debug-command", "local", *self._arguments, *arguments,
        ]
        # fmt: on
        with (self.directory / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=dying_with_parent(),
            )

    @property
    def is_ready(self) -> bool:
        """Whether it answers and has loaded its data."""
        with self.client() as client:
            return self._answers(client)

    def stop(self) -> None:
        """End it as an operator would, by SIGTERM; by SIGKILL if it has not ended 5 s later."""
        process = self._running()
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None

    def kill(self) -> None:
        """End it by SIGKILL, as a crash would."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def pause(self) -> None:
        """Send SIGSTOP: connections stay open, and nothing answers."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._running().send_signal(signal.SIGCONT)

    def client(self) -> redis.Redis:
        """Return a new synchronous client that tries each command once; use it in a ``with``."""
        return redis.Redis(
            host=HOST, port=self.port, socket_timeout=5, retry=Retry(NoBackoff(), retries=0)
        )

    def close(self) -> None:
        """End it, however it is, and delete its directory."""
        if self._process is not None:
            self.kill()
        if self._holder is not None:
            self._holder.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _start_on_free_port(self) -> None:
        for attempt in range(1, PORT_TRIES + 1):
            if self._holder is not None:
                self._holder.close()
            self.port, self._holder = held_port()
            try:
                self.start()
            except PortTaken:
                if attempt == PORT_TRIES:
                    raise
            else:
                break

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"the server on port {self.port} is not running: start() it first")
        return self._process

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + patience(START_SECONDS)
        with self.client() as client:
            while not self._answers(client):
                if self._running().poll() is not None:
                    taken = "Address already in use" in self.log
                    raise (PortTaken if taken else RuntimeError)(f"no server: {self.log[-2000:]}")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"no answer in {START_SECONDS} s: {self.log[-2000:]}")
                time.sleep(POLL_SECONDS)

    def _answers(self, client: redis.Redis) -> bool:
        try:
            info = client.info()
        except redis.RedisError:
            return False
        # The port was free a moment ago: whoever answers may be another server.
        return bool(info["process_id"] == self.pid and not info["loading"])


class PortTaken(RuntimeError):
    """Another process took the port between finding it free and listening on it."""


def redis_server_path() -> str:
    """Return the program: the one on PATH, else the one that ``make setup`` put beside Python."""
    beside = Path(sys.executable).with_name("redis-server")
    found = shutil.which("redis-server") or (str(beside) if beside.exists() else None)
    if found is None:
        raise RuntimeError("redis-server is not installed: run `make setup`")
    return found

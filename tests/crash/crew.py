"""The workers of one crash test: processes that share a storage, a ledger and gates."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import redis

from headrace import App
from headrace.storage.sqlite.engine.location import place_of
from tests.apps.crash_app import QUEUE, producer
from tests.apps.kill_loop import noted
from tests.support.ledger import Ledger
from tests.support.processes import WorkerProcess
from tests.support.until import until

LEASE_S = 1.0
SWEEP_S = 0.2
RECOVERED_S = LEASE_S + SWEEP_S + 1.0
"""G3 for these workers."""

NOISE_S = 3.0
"""What a busy machine may add to a bound."""

ROOT = f"hr:{{crash:{QUEUE}}}"


class CrashWorker(WorkerProcess):
    """A process of `tests.apps.crash_app`."""

    label: str = ""
    database: Path | None = None

    def events(self, what: str | None = None) -> list[dict[str, Any]]:
        """Return what it has told so far, of one kind or all."""
        # The last line may be half written.
        lines = self.stdout.split("\n")[:-1]
        told = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
        return [event for event in told if what in (None, event["what"])]

    def count(self, what: str) -> int:
        """Return how often it told something."""
        return len(self.events(what))

    @property
    def is_ready(self) -> bool:
        """Whether it consumes, by its own word."""
        words = [e["what"] for e in self.events() if e["what"] in ("ready", "unready")]
        return bool(words) and words[-1] == "ready"

    async def ready(self, within: float = 8.0) -> Self:
        """Wait until it consumes."""

        def is_ready() -> bool:
            assert self.returncode is None, f"it has ended: {self.stderr}"
            return self.is_ready

        await until(is_ready, within=within, what=f"worker {self.label} is ready")
        return self

    def stop(self) -> None:
        """Stop it, but not in the middle of a write to a database: that would stop all others."""
        while True:
            super().stop()
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)
            if self.database is None or is_writable(self.database):
                return
            self.cont()

    def cpu_s(self) -> float:
        """Return the processor time that it has used, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


class Crew:
    """Starts workers; all are killed when the ``with`` is left.

    Args:
        url: the storage.
        directory: for the ledger, the gates and the outputs.
    """

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self.ledger = Ledger(directory / "ledger")
        self._stack = ExitStack()
        self._started = 0

    def worker(
        self,
        name: str,
        *,
        url: str | None = None,
        loop: str = "asyncio",
        without: str = "",
        **options: Any,
    ) -> CrashWorker:
        """Start a worker with a short lease; ``options`` are those of `headrace.Worker`."""
        self._started += 1
        chosen = {
            "lease": LEASE_S,
            "sweep_interval": SWEEP_S,
            "concurrency": 10,
            "queues": [QUEUE],
            "shutdown_timeout": 1.0,
            **options,
        }
        worker = CrashWorker.module(
            "tests.apps.crash_app",
            msgspec.json.encode(chosen).decode(),
            directory=self.directory,
            name=f"{self._started}-{name}",
            env={
                "HEADRACE_REDIS_URL": url or self.url,
                "CRASH_NAME": name,
                "CRASH_DIRECTORY": str(self.directory),
                "CRASH_WITHOUT": without,
                "CRASH_LOOP": loop,
            },
        )
        worker.label = name
        if self.url.startswith("file://"):
            worker.database = place_of(self.url).path
        return self._stack.enter_context(worker)

    def producer(self, name: str, count: int) -> WorkerProcess:
        """Start a process that enqueues ``count`` jobs and notes their ids."""
        process = WorkerProcess.module(
            "tests.apps.crash_producer",
            str(count),
            directory=self.directory,
            name=name,
            env={
                "HEADRACE_REDIS_URL": self.url,
                "CRASH_NAME": name,
                "CRASH_DIRECTORY": str(self.directory),
            },
        )
        return self._stack.enter_context(process)

    def sent(self, word: str) -> set[str]:
        """Return the ids that producers ``wanted`` to enqueue, or that were ``accepted``."""
        return {i for path in self.directory.glob("sent-*") for i in noted(path, word)}

    def open(self, gate: str) -> None:
        """Let the handlers that hold at a gate go on; ``gate-worker`` only those of one worker."""
        (self.directory / f"gate-{gate}").touch()

    def app(self, **options: Any) -> App[None]:
        """Return a producer that talks to the storage directly."""
        return producer(self.url, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)


def is_writable(database: Path) -> bool:
    """Whether nobody holds it for longer than a write takes."""
    connection = sqlite3.connect(database, timeout=1, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def left_of_others(crew: Crew, incarnation: str) -> set[str]:
    """Return what is left in the storage of incarnations but one, and of their processes."""
    if crew.url.startswith("file://"):
        return {path.name for path in place_of(crew.url).wake_folder.iterdir() if is_dead(path)}
    with redis.Redis.from_url(crew.url) as client:
        return {key for key in incarnation_keys(client) if incarnation not in key}


def is_dead(path: Path) -> bool:
    """Whether the process that listened on a socket is gone."""
    # The path itself may be too long for an address.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            return sender.connect_ex(f"/proc/self/fd/{folder}/{path.name}") != 0
    finally:
        os.close(folder)


def incarnation_keys(client: redis.Redis) -> set[str]:
    """Return the keys that an incarnation owns, of all there are."""
    owned = ("worker", "processing", "cancels")
    keys = [key for what in owned for key in client.scan_iter(f"{ROOT}:{what}:*")]
    return {key.decode() for key in keys}


async def passed(seconds: float) -> None:
    """Let a fault last for some time: where its length is the fault, and nothing is waited for."""
    since = time.monotonic()
    await until(lambda: time.monotonic() - since >= seconds, within=seconds + 1)

"""One fault as it happens: whom it hits, and from when to when."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import NamedTuple

import psutil

from tests.chaos.crew import PRODUCERS, READERS, WORKERS
from tests.chaos.member import Member
from tests.chaos.redis_site import RedisSite
from tests.chaos.site import Site
from tests.crash.crew import CrashWorker, is_writable
from tests.support.proxy import Proxy
from tests.support.until import until

_numbers = count(1)


class Strike:
    """A fault under way.

    Args:
        site: where.
        fault: its name.
    """

    def __init__(self, site: Site, fault: str) -> None:
        self.site = site
        self.fault = fault
        self.random: random.Random = site.random
        self._open: dict[int, str] = {}

    def on(self, target: str) -> None:
        """Note that it begins, on somebody or something."""
        number = next(_numbers)
        self._open[number] = target
        self.site.notes.fault("begin", number, self.fault, target)

    def on_process(self, process: CrashWorker, pid: int | None = None) -> None:
        """Note that it begins, on a process or on one below it."""
        self.on(f"{process.label}:{pid or process.pid}")

    def over(self) -> None:
        """Note that it has ended."""
        for number, target in self._open.items():
            self.site.notes.fault("end", number, self.fault, target)
        self._open.clear()

    # Targets

    def worker(self, *, is_supervisor: bool | None = None) -> Member:
        """Draw a worker, or a process that supervises some."""
        fitting = [
            worker
            for worker in self.site.crew.workers
            if is_supervisor is None or (worker.name == "pair") == is_supervisor
        ]
        return self.random.choice(fitting)

    def producer(self) -> Member:
        """Draw a producer."""
        return self.random.choice(self.site.crew.producers)

    def reader(self) -> Member:
        """Draw one who archives and reads."""
        return self.random.choice(self.site.crew.readers)

    def proxy(self) -> Proxy:
        """Draw a member that is cut off, and note it by its name."""
        assert isinstance(self.site, RedisSite)
        # Twice a worker for each of the others.
        name = self.random.choice((*WORKERS, *WORKERS, *PRODUCERS, *READERS))
        self.on(f"{name}:0")
        return self.site.proxies[name]

    @property
    def redis(self) -> RedisSite:
        """The site, which is one on Redis."""
        assert isinstance(self.site, RedisSite)
        return self.site


async def suspend(process: CrashWorker) -> None:
    """Stop a process, but not in the middle of a write to a database: that would stop all."""
    while not await stopped_outside(process):
        process.cont()


async def stopped_outside(process: CrashWorker) -> bool:
    """Stop a process; whether it did not hold the database just then."""
    super(CrashWorker, process).stop()
    await until(lambda: not runs(process.pid), within=5, what=f"{process.label} stands still")
    return process.database is None or is_writable(process.database)


def runs(pid: int) -> bool:
    """Whether a process is neither stopped nor gone."""
    with suppress(psutil.NoSuchProcess):
        halted = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        return psutil.Process(pid).status() not in halted
    return False


class Fault(NamedTuple):
    """One kind: its name, what it does, and the storages on which it is possible."""

    name: str
    strike: Callable[[Strike], Awaitable[None]]
    storages: tuple[str, ...] = ("redis", "file")

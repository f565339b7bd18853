"""What a run takes place on: a storage of its own, with its crew."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path

from headrace import App
from tests.apps.chaos_app import TENANT
from tests.chaos.crew import WORKERS, Crew
from tests.chaos.notes import Notes
from tests.chaos.plan import QUEUES
from tests.chaos.settings import Settings
from tests.chaos.writes import writes_of
from tests.support.jobs import unended
from tests.support.until import until

STARTS_S = 60.0
SILENT_S = 1.5
"""After so long the next beat, which comes every third of the lease, is late."""

EVERYTHING = 10_000_000
"""Kept of events, records and dead letters, since the verdict looks at all of them."""


class Site(ABC):
    """A storage and its crew; use it as an async context manager.

    Args:
        settings: of the run.
        directory: for logs and notes.

    Attributes:
        crew: who works here.
        notes: what they say of it.
        random: for the faults.
    """

    crew: Crew

    def __init__(self, settings: Settings, directory: Path) -> None:
        self.settings = settings
        self.directory = directory
        self.notes = Notes(directory)
        self.random = random.Random(f"{settings.seed}/faults")

    @property
    @abstractmethod
    def url(self) -> str:
        """The address before which no fault stands."""

    @abstractmethod
    def problems(self) -> list[str]:
        """Return what is wrong with what is stored."""

    @abstractmethod
    def forget_events(self) -> None:
        """Delete the events."""

    @abstractmethod
    def memory(self) -> int:
        """Return how many bytes are taken."""

    @abstractmethod
    async def heal(self) -> None:
        """End whatever a fault may have left behind."""

    @abstractmethod
    def crashes(self) -> list[str]:
        """Return which parts of the site have ended by themselves; called often."""

    def attend(self) -> None:
        """Look after everybody."""
        self.crashes()
        self.crew.attend()

    def app(self) -> App[None]:
        """Return a client that looks at the storage directly."""
        return App(self.url, tenant=TENANT)

    async def configure(self) -> None:
        """Have everything kept."""
        async with self.app() as app:
            for queue in QUEUES:
                await app.queue(queue).configure(
                    events=EVERYTHING, history=EVERYTHING, dead_letters=EVERYTHING
                )

    async def start(self, url_of: Callable[[str], str]) -> None:
        """Start the workers, and when they serve the queues the others."""
        await self.configure()
        self.crew.start_workers(url_of)
        async with self.app() as app:

            async def are_there() -> bool:
                return len(await app.queue(QUEUES[0]).workers()) > len(WORKERS)

            await until(are_there, within=STARTS_S, what="the workers serve their queue")
        self.crew.start_producers(url_of)
        self.crew.start_readers(url_of)

    async def has_sent_all(self, within: float) -> bool:
        """Wait until each producer has sent its share; whether that came."""
        return await came(lambda: self.crew.have_sent_all, within)

    async def has_published_all(self, within: float) -> bool:
        """Wait until all jobs of each write that was committed are stored; whether that came."""
        writes = writes_of(self.notes.all_wrote()).values()
        async with self.app() as app:

            async def look() -> bool:
                for write in writes:
                    report = await app.write_report(write.id, queue=write.queue)
                    if report is not None and not report.is_published:
                        return False
                return True

            return await came(look, within)

    async def is_drained(self, within: float) -> bool:
        """Wait until no job waits or runs; whether that came."""
        async with self.app() as app:

            async def look() -> bool:
                return not sum([await unended(app.queue(name)) for name in QUEUES])

            return await came(look, within)

    async def has_forgotten(self, within: float) -> bool:
        """Wait until every incarnation that is listed beats; whether that came."""
        async with self.app() as app:

            async def look() -> bool:
                infos = [info for name in QUEUES for info in await app.queue(name).workers()]
                return not any(i.condemned or i.silent_s > SILENT_S for i in infos)

            return await came(look, within)


async def came(predicate: Callable[[], bool | Awaitable[bool]], within: float) -> bool:
    """Wait for a predicate; whether it came true in time."""
    try:
        await until(predicate, within=within)
    except AssertionError:
        return False
    return True

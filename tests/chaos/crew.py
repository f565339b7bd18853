"""The workers and producers of a run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from tests.apps.chaos_jobs import DRAINED, Assignment
from tests.chaos.member import Member
from tests.chaos.notes import Notes
from tests.chaos.settings import GRACE_S, LEASE_S, LEAVES_S, SWEEP_S, Settings
from tests.crash.crew import CrashWorker

WORKERS: dict[str, tuple[str, ...]] = {
    "mixed": ("-q", "main=2,side=1", "-c", "20", "--process-slots", "1"),
    "alone": ("-q", "main", "-c", "30", "--process-slots", "0"),
    "pair": ("-q", "main,side", "-c", "10", "--process-slots", "1", "--processes", "2"),
}
"""By name: several queues and kinds of slots; one queue, which claims ahead; a supervisor."""

PRODUCERS = {
    **dict.fromkeys(("p1", "p2", "p3"), "tests.apps.chaos_producer"),
    "s1": "tests.apps.chaos_sync_producer",
}
"""By name: the module."""

READERS = ("r1",)


class Crew:
    """Everybody who is started; all are killed when it is closed.

    Args:
        settings: of the run.
        directory: for logs and notes.
        database: the file in whose writes nobody is to be stopped, if there is one.
    """

    def __init__(self, settings: Settings, directory: Path, database: Path | None) -> None:
        self.workers: list[Member] = []
        self.producers: list[Member] = []
        self.readers: list[Member] = []
        self._settings = settings
        self._directory = directory
        self._database = database
        self._stack = ExitStack()

    def start_workers(self, url_of: Callable[[str], str]) -> None:
        """Start the workers, each with an address of its own."""
        for name, words in WORKERS.items():
            self.workers.append(Member(name, self._worker(url_of(name), words)))

    def start_producers(self, url_of: Callable[[str], str]) -> None:
        """Start the producers, likewise."""
        for name in PRODUCERS:
            self.producers.append(Member(name, self._producer(name, url_of(name))))

    def start_readers(self, url_of: Callable[[str], str]) -> None:
        """Start those who archive what has ended, and read the events."""
        for name in READERS:
            self.readers.append(Member(name, self._reader(url_of(name))))

    @property
    def members(self) -> list[Member]:
        """Everybody."""
        return [*self.workers, *self.producers, *self.readers]

    def attend(self) -> None:
        """Start those again who have ended."""
        for member in self.members:
            member.look_after()

    def _worker(self, url: str, words: Sequence[str]) -> Callable[[str], CrashWorker]:
        def start(name: str) -> CrashWorker:
            return self._spawn(
                name, url, "headrace", "worker", "tests.apps.chaos_app:app", *words,
                "--lease", f"{LEASE_S}s", "--sweep-interval", f"{SWEEP_S}s",
                "--shutdown-timeout", f"{GRACE_S}s", "--name", name,
                "--log-format", "json", "--log-level", "warning",
            )  # fmt: skip

        return start

    def _producer(self, whose: str, url: str) -> Callable[[str], CrashWorker]:
        share = self._settings.jobs // len(PRODUCERS)

        def start(name: str) -> CrashWorker:
            labels = {
                line.what for line in Notes(self._directory).all_sent() if line.word == "want"
            }
            left = share - sum(label.split(".")[1].startswith(f"{whose}-") for label in labels)
            assignment = Assignment(
                jobs=max(0, left),
                seconds=self._settings.seconds * left / share,
                seed=f"{self._settings.seed}/{name}",
                one_in=self._settings.one_in,
            )
            words = msgspec.json.encode(assignment).decode()
            return self._spawn(name, url, PRODUCERS[whose], words)

        return start

    def _reader(self, url: str) -> Callable[[str], CrashWorker]:
        return lambda name: self._spawn(name, url, "tests.apps.chaos_reader")

    def _spawn(self, name: str, url: str, module: str, *words: str) -> CrashWorker:
        process = CrashWorker.module(
            module,
            *words,
            directory=self._directory,
            name=name,
            env={
                "HEADRACE_REDIS_URL": url,
                "CHAOS_DIRECTORY": str(self._directory),
                "CHAOS_NAME": name,
                "CHAOS_MUTANT": self._settings.mutant,
            },
            python=sys.executable,
        )
        process.label = name
        process.database = self._database
        return self._stack.enter_context(process)

    @property
    def have_sent_all(self) -> bool:
        """Whether each producer has sent its share."""
        signs = (f"sent-all-{member.process.label}" for member in self.producers)
        return all((self._directory / sign).exists() for sign in signs)

    async def dismiss_producers(self) -> None:
        """Tell producers and readers that everything has ended, and wait until they are gone."""
        (self._directory / DRAINED).touch()
        await self._dismiss([*self.producers, *self.readers], within=30)

    async def dismiss_workers(self) -> None:
        """Stop the workers, and wait until they are gone."""
        for worker in self.workers:
            worker.ask()
        await self._dismiss(self.workers, within=LEAVES_S)

    async def _dismiss(self, members: Sequence[Member], *, within: float) -> None:
        for member in members:
            code = await member.process.wait(within)
            if code != 0:
                member.unasked.append(f"{member.process.label} exit {code}")

    def close(self) -> None:
        """Kill who is left."""
        self._stack.close()

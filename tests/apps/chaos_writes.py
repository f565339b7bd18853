"""The bulk writes of a producer of the chaos soak, as `tests.chaos.writes` says of their ids."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from headrace import App, SyncApp, WriteReport
from tests.apps.chaos_app import name, notes
from tests.apps.chaos_jobs import job_of, note_odd
from tests.chaos.plan import Kind, queue_of
from tests.chaos.writes import Fate, Try, Write, fate_of, has_own_ids, writes_of

SIZES = (40, 150, 700)
"""How many jobs go in a write, of both queues; the last needs several calls."""

RAISES_ROWS = 800
"""Three in four are of one queue, more than one call stages: so some are staged when it raises."""

RAISES_ONE_IN = 3
DIES_WITHIN_S = 0.1
STAGE_TTL_S = 60.0
AGAIN_S = 0.2


class Unwanted(Exception):
    """What a block raises that is to bring nothing."""


class Attempt:
    """One try of a write.

    Args:
        write: the write.
        labels: of its jobs.
    """

    def __init__(self, write: Write, labels: Sequence[str]) -> None:
        has_id = has_own_ids(write.id)
        self.write = write
        self.jobs = [job_of(label, has_id=has_id) for label in labels]
        self._labels = labels
        self._number = len(write.tries) + 1
        self._try = Try([job.id for job in self.jobs])
        self._is_whole = False
        self._rows = 0

    def is_whole(self) -> None:
        """Note that all is added: from now on it may be committed.

        Raises:
            Unwanted: that is the fate of this write.
        """
        if fate_of(self.write.id) is Fate.RAISES:
            raise Unwanted
        self._is_whole = True

    def hear(self, report: WriteReport) -> None:
        """Note how many jobs were committed."""
        self._rows = report.rows

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the beginning of a block, and how it ends; an error of it ends here."""
        self._begin()
        try:
            yield
        except Exception as error:
            self._end("lost" if self._is_whole else "failed", type(error).__name__)
            if not isinstance(error, Unwanted):
                note_odd(error, self.write.id)
        else:
            self._end("done", str(self._rows))

    def _begin(self) -> None:
        self.write.tries.append(self._try)
        rows = self._try.rows
        notes.sent("want", *zip(rows, self._labels, strict=True))
        notes.wrote(
            self.write.id,
            self._number,
            ("begin", self.write.queue),
            *(("row", job_id) for job_id in rows),
        )
        if self._number == 1 and fate_of(self.write.id) in (Fate.KILLED, Fate.LEFT):
            die_within(DIES_WITHIN_S, seed=self.write.id)

    def _end(self, word: str, what: str) -> None:
        self._try.end, self._try.what = word, what
        notes.wrote(self.write.id, self._number, (word, what))


def die_within(seconds: float, *, seed: str) -> None:
    """Let this process be killed in a moment, whatever it does then."""
    moment = random.Random(seed).uniform(0, seconds)
    killer = threading.Timer(moment, os.kill, (os.getpid(), signal.SIGKILL))
    killer.daemon = True
    killer.start()


class Writer:
    """The writes of a producer, and those that its killed predecessors have left to it."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Write, Sequence[str]]] = {}
        self._count = 0
        mine = name.rpartition("-")[0] + "-"
        left = [write for write in writes_of(notes.all_wrote()).values() if write.is_to_run]
        if left:
            labels = {line.job_id: line.what for line in notes.all_sent() if line.word == "want"}
            for write in left:
                if write.id.split(".")[1].startswith(mine):
                    self._open[write.id] = write, [labels[row] for row in write.tries[-1].rows]

    def begin(self, labels: Sequence[str]) -> Iterator[Attempt]:
        """Yield the first try of a write for each queue, and of one that raises now and then."""
        if self._count % RAISES_ONE_IN == 0:
            others = [f"{Kind.PLAIN}.x-{name}-{self._count}.{n}" for n in range(RAISES_ROWS)]
            yield from self._new(Fate.RAISES, others)
        yield from self._new("write", labels)

    def _new(self, kind: str, labels: Sequence[str]) -> Iterator[Attempt]:
        for queue in sorted({queue_of(label) for label in labels}):
            group = [label for label in labels if queue_of(label) == queue]
            self._count += 1
            write = Write(f"{kind}.{name}.{self._count}", queue, [])
            self._open[write.id] = write, group
            yield Attempt(write, group)

    def again(self) -> Iterator[Attempt]:
        """Yield another try of each write that needs one."""
        self._open = {i: pair for i, pair in self._open.items() if pair[0].is_to_run}
        for write, labels in list(self._open.values()):
            yield Attempt(write, labels)

    @property
    def is_open(self) -> bool:
        """Whether a write needs another try."""
        return any(write.is_to_run for write, _ in self._open.values())


async def run(app: App[None], attempt: Attempt) -> None:
    """Make a try in an event loop."""
    write = attempt.write
    with attempt.noted():
        async with app.bulk(write.id, queue=write.queue, stage_ttl=STAGE_TTL_S) as bulk:
            await bulk.add_many(attempt.jobs)
            attempt.is_whole()
        attempt.hear(bulk.report)


def run_blocking(app: SyncApp[None], attempt: Attempt) -> None:
    """Make a try in code without an event loop."""
    write = attempt.write
    with attempt.noted():
        with app.bulk(write.id, queue=write.queue, stage_ttl=STAGE_TTL_S) as bulk:
            bulk.add_many(attempt.jobs)
            attempt.is_whole()
        attempt.hear(bulk.report)

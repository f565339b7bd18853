"""The notes of a run: what producers want and hear, what handlers do, what breaks, and when.

All times are the machine's monotonic clock, the same in every process.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal, NamedTuple

from headrace.job import Claim
from tests.support.lines import Lines

Answer = Literal["ok", "no", "lost"]
"""What a producer hears of an enqueue: stored, not stored, or nothing that can be relied on."""


class Run(NamedTuple):
    """A line of a handler: ``start``, ``end`` when it returned, ``cut`` when it was left."""

    word: str
    job_id: str
    epoch: int
    nonce: str
    worker: str
    pid: int
    at: float

    @property
    def incarnation(self) -> str:
        """Which incarnation claimed it."""
        return self.nonce.partition("/")[0]


class Sent(NamedTuple):
    """A line of a producer.

    ``want`` (its label), an `Answer` (the outcome, or the error), ``cancel`` and ``cancelled`` (the
    answer), ``waits``, ``got`` (how the wait ended), ``hung``.
    """

    word: str
    job_id: str
    what: str
    at: float


class Wrote(NamedTuple):
    """A line of a producer about a try of a bulk write.

    ``begin`` (the queue), ``row`` (the id of each of its jobs), and how the block ended: ``done``
    (how many jobs were committed), ``failed`` (before its end: nothing is committed) or ``lost``
    (at its end), both with the error. A killed process leaves a try without an end.
    """

    word: str
    write_id: str
    number: int
    what: str
    at: float


class Archived(NamedTuple):
    """A line of the archive: a job that has ended, and where to go on behind it."""

    queue: str
    state: str
    job_id: str
    cursor: str


class Read(NamedTuple):
    """A line of the events' reader; of an incarnation's event the id is the incarnation's."""

    queue: str
    number: int
    kind: str
    job_id: str


class Window(NamedTuple):
    """A fault, from when to when, and of whom: the name of a worker or producer, or of a part."""

    fault: str
    target: str
    begin: float
    end: float


class Notes:
    """The files of a run.

    Args:
        directory: where they are.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._runs = Lines(directory / "runs")
        self._sent = Lines(directory / "sent")
        self._wrote = Lines(directory / "wrote")
        self._archive = Lines(directory / "archive")
        self._read = Lines(directory / "read")
        self._faults = Lines(directory / "faults")

    def run(self, word: str, job_id: str, claim: Claim, worker: str, pid: int) -> None:
        """Note what a handler does."""
        self._runs.write(
            f"{word} {job_id} {claim.epoch} {claim.nonce} {worker} {pid} {time.monotonic():.6f}"
        )

    def sent(self, word: str, *pairs: tuple[str, str]) -> None:
        """Note what a producer wants or hears of some jobs; each pair is an id and what."""
        now = time.monotonic()
        self._sent.write(*(f"{word} {job_id} {what} {now:.6f}" for job_id, what in pairs))

    def wrote(self, write_id: str, number: int, *pairs: tuple[str, str]) -> None:
        """Note what becomes of a try of a write; each pair is a word and what."""
        now = time.monotonic()
        self._wrote.write(*(f"{word} {write_id} {number} {what} {now:.6f}" for word, what in pairs))

    def archived(self, *lines: tuple[str, str, str, str]) -> None:
        """Note jobs in the archive, each as `Archived` says."""
        self._archive.write(*map(" ".join, lines))

    def read(self, *lines: tuple[str, int, str, str]) -> None:
        """Note events that were read, each as `Read` says."""
        self._read.write(*(f"{queue} {n} {kind} {job_id}" for queue, n, kind, job_id in lines))

    def fault(self, word: str, number: int, fault: str, target: str) -> None:
        """Note that a fault begins, or ends."""
        self._faults.write(f"{word} {number} {fault} {target} {time.monotonic():.6f}")

    def all_runs(self) -> list[Run]:
        """Return what handlers have noted, in the order of the time."""
        lines = [
            Run(word, job_id, int(epoch), nonce, worker, int(pid), float(at))
            for word, job_id, epoch, nonce, worker, pid, at in self._runs.read()
        ]
        return sorted(lines, key=lambda line: line.at)

    def all_sent(self) -> list[Sent]:
        """Return what producers have noted."""
        return [Sent(word, job_id, what, float(at)) for word, job_id, what, at in self._sent.read()]

    def all_wrote(self) -> list[Wrote]:
        """Return what producers have noted of their writes."""
        return [
            Wrote(word, write_id, int(number), what, float(at))
            for word, write_id, number, what, at in self._wrote.read()
        ]

    def all_archived(self) -> list[Archived]:
        """Return the archive."""
        return [Archived(*words) for words in self._archive.read()]

    def all_read(self) -> list[Read]:
        """Return what the events' reader has noted."""
        return [Read(queue, int(n), kind, job_id) for queue, n, kind, job_id in self._read.read()]

    def windows(self) -> list[Window]:
        """Return the faults so far; one that has not ended lasts for ever."""
        found: dict[str, Window] = {}
        for word, number, fault, target, at in self._faults.read():
            if word == "begin":
                found[number] = Window(fault, target, float(at), float("inf"))
            else:
                found[number] = found[number]._replace(end=float(at))
        return list(found.values())

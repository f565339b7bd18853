"""Bulk writes: what is to become of each, a function of its id alone, and what became of its tries.

A write's id is ``write.origin.number``. Half of them have jobs with ids of their own, which are the
same at each try; the jobs of the others are new ones at each, so that a second commit would show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from tests.chaos.notes import Wrote
from tests.chaos.plan import number_of


class Fate(StrEnum):
    """What happens to a write."""

    WHOLE = "whole"
    """It is run until its block has ended well."""
    KILLED = "killed"
    """Its process dies early in the first try; then as above."""
    LEFT = "left"
    """Its process dies in the first try, and nobody runs it again."""
    RAISES = "raises"
    """Its block raises once all is added, and nobody runs it again."""


FATES = (*(Fate.WHOLE,) * 6, Fate.KILLED, Fate.LEFT)


def fate_of(write_id: str) -> Fate:
    """Return what is to happen to a write; its kind may say so."""
    kind = write_id.partition(".")[0]
    return Fate.RAISES if kind == Fate.RAISES else FATES[number_of(write_id) % len(FATES)]


def has_own_ids(write_id: str) -> bool:
    """Whether its jobs have the same ids at each try."""
    return number_of(write_id) // len(FATES) % 2 == 0


def comes_again(write_id: str) -> bool:
    """Whether it is run once more after its end, which must bring nothing."""
    return number_of(write_id) // (2 * len(FATES)) % 2 == 0


class Try(msgspec.Struct):
    """One run of a write's block.

    Attributes:
        rows: the ids of its jobs.
        end: ``done``, ``failed``, ``lost``, or "" if its process was killed.
        what: the figure or the error that it ended with.
    """

    rows: list[str]
    end: str = ""
    what: str = ""


class Write(msgspec.Struct):
    """A write with its tries, the first one first."""

    id: str
    queue: str
    tries: list[Try] = []

    @property
    def is_done(self) -> bool:
        """Whether a block has ended well."""
        return any(one.end == "done" for one in self.tries)

    @property
    def has_surely_failed(self) -> bool:
        """Whether no try came to its commit."""
        return all(one.end == "failed" for one in self.tries)

    @property
    def is_to_run(self) -> bool:
        """Whether another try is due."""
        if fate_of(self.id) in (Fate.LEFT, Fate.RAISES):
            return not self.tries
        wanted = 2 if comes_again(self.id) else 1
        return sum(one.end == "done" for one in self.tries) < wanted

    def commits(self) -> Iterator[frozenset[str]]:
        """Yield what it may have brought in: the jobs of any one try."""
        yield from {frozenset(one.rows) for one in self.tries}


def writes_of(lines: Iterable[Wrote]) -> dict[str, Write]:
    """Return the writes that producers have noted."""
    found: dict[str, Write] = {}
    for line in lines:
        if line.word == "begin":
            write = found.setdefault(line.write_id, Write(line.write_id, line.what))
            write.tries.append(Try([]))
            continue
        one = found[line.write_id].tries[line.number - 1]
        if line.word == "row":
            one.rows.append(line.what)
        else:
            one.end, one.what = line.word, line.what
    return found

"""What is measured together: cases that take turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from benchmarks.growth.points import Place, Point, Values
from benchmarks.harness import Goal
from benchmarks.spark.stand import RATE, Stand

Case = Callable[[Stand], Values]
"""Brings the stand into order and measures once."""


class Part(msgspec.Struct, frozen=True):
    """Cases that take turns, by what stands before them in the table.

    Attributes:
        title: of the table.
        cases: by line and size.
        prepare: called once before.
        main: the value of which all runs are shown.
        goals: of that.
        rounds: how many at most.
    """

    title: str
    cases: Mapping[Place, Case]
    prepare: Callable[[Stand], object] = Stand.empty
    main: str = RATE
    goals: Mapping[Place, Goal] = {}
    rounds: int = 3


def measured(stand: Stand, part: Part, *, rounds: int) -> list[Point]:
    """Measure all cases in rounds, every other round backwards; before, the first to warm up."""
    part.prepare(stand)
    if rounds > 1 and part.rounds > 1:
        next(iter(part.cases.values()))(stand)
    taken: dict[Place, list[Values]] = {place: [] for place in part.cases}
    for number in range(min(rounds, part.rounds)):
        for place in list(taken)[:: -1 if number % 2 else 1]:
            taken[place].append(part.cases[place](stand))
    return [
        Point(line, size, {name: [values[name] for values in runs] for name in runs[0]})
        for (line, size), runs in taken.items()
    ]

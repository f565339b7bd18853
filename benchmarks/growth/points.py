"""What a part measures: values at the points of some lines, in runs that take turns."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Mapping

import msgspec

ROUNDS = 3

Values = dict[str, float]
"""What one run measured, by name and unit."""

Place = tuple[str, int]
"""A line, and a size on it."""


class Point(msgspec.Struct, frozen=True):
    """What was measured at one size of a line; ``runs`` has the values of all rounds."""

    line: str
    size: int
    runs: dict[str, list[float]]

    def median(self, name: str) -> float:
        """Return the median of the runs."""
        return statistics.median(self.runs[name])


class Part(msgspec.Struct, frozen=True):
    """One part's points, with the day and the machine on which they were measured."""

    title: str
    day: str
    machine: dict[str, str]
    points: list[Point]


async def take_turns(
    runs: Mapping[Place, Callable[[], Awaitable[Values]]], *, rounds: int = ROUNDS
) -> list[Point]:
    """Call all in rounds, every other round backwards, so that all share the machine's moods."""
    rows: dict[Place, list[Values]] = {place: [] for place in runs}
    for number in range(rounds):
        for place in list(runs)[:: -1 if number % 2 else 1]:
            rows[place].append(await runs[place]())
    return [
        Point(line, size, {name: [values[name] for values in taken] for name in taken[0]})
        for (line, size), taken in rows.items()
    ]

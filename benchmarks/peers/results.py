"""What came out, as tables: medians, and by how much headrace is better than each peer."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from benchmarks.harness import shown
from benchmarks.report import NOTHING, Bars, table

GOAL = 5.0
"""How many times as fast as the fastest peer bulk enqueue and drain should be."""
TIMES = "\N{MULTIPLICATION SIGN}"


class Column(msgspec.Struct, frozen=True):
    """One figure that every peer has.

    Attributes:
        key: what the cells call it.
        title: what the tables call it.
        unit: of the values.
        is_rate: more is better.
        goal: by how many times ours should be better than the best peer's.
    """

    key: str
    title: str
    unit: str
    is_rate: bool = False
    goal: float | None = None


SPEEDS = (
    Column("single_rate", "enqueue one by one", "jobs/s", is_rate=True),
    Column("single_p99_ms", "enqueue one by one, p99", "ms"),
    Column("bulk_rate", "bulk enqueue", "jobs/s", is_rate=True, goal=GOAL),
    Column("drain_rate", "drain", "jobs/s", is_rate=True, goal=GOAL),
    Column("start_p50_ms", "start, p50", "ms"),
    Column("start_p99_ms", "start, p99", "ms"),
    Column("round_trip_p50_ms", "round trip, p50", "ms"),
    Column("round_trip_p99_ms", "round trip, p99", "ms"),
)
COSTS = (
    Column("client_us", "enqueue one by one, producer's processor time", "µs a job"),
    Column("idle_mb", "worker, idle", "MB"),
    Column("loaded_mb", "worker, loaded", "MB"),
    Column("commands", "Redis commands", "a job"),
    Column("server_us", "Redis processor time", "µs a job"),
)
COLUMNS = (*SPEEDS, *COSTS)
PRODUCERS = tuple(
    msgspec.structs.replace(column, goal=None)
    for column in COLUMNS
    if column.key.startswith(("single", "bulk", "client", "round_trip"))
)
"""What a producer sees, for the comparison of those without an event loop."""


class Result(msgspec.Struct, frozen=True):
    """One peer's values of all rounds.

    Attributes:
        name: what the tables call it.
        version: of its release.
        notes: its settings, and what it lacks.
        drain_count: how many jobs its drain had.
        runs: by column; a round without a value adds nothing.
        reasons: why values are missing, one for each time.
    """

    name: str
    version: str
    notes: str
    drain_count: int
    runs: dict[str, list[float]] = msgspec.field(default_factory=dict)
    reasons: list[str] = msgspec.field(default_factory=list)

    def value(self, column: Column) -> float | None:
        """Return the median, or None if no round has a value."""
        runs = self.runs.get(column.key)
        return statistics.median(runs) if runs else None


def ratio(column: Column, ours: float | None, theirs: float | None) -> float | None:
    """Return how many times better ours is; None where either is missing or zero."""
    if not ours or not theirs:
        return None
    return ours / theirs if column.is_rate else theirs / ours


def factor(times: float) -> str:
    """Return a ratio with as many digits as can be believed."""
    return f"{times:.0f}{TIMES}" if times >= 10 else f"{times:.2g}{TIMES}"


def best(column: Column, peers: Sequence[Result]) -> tuple[Result, float] | None:
    """Return the peer with the best value, and that value; None if none has one."""
    known = [(peer, value) for peer in peers if (value := peer.value(column)) is not None]
    if not known:
        return None
    return (max if column.is_rate else min)(known, key=lambda pair: pair[1])


def compared(columns: Sequence[Column], ours: Result, peers: Sequence[Result]) -> str:
    """Return a table: a row for each, beside a peer's value how many times better ours is."""
    rows = []
    for result in (ours, *peers):
        cells = [f"{result.name} {result.version}"]
        for column in columns:
            value = result.value(column)
            cell = NOTHING if value is None else shown(value)
            times = ratio(column, ours.value(column), value)
            cells.append(cell if result is ours or times is None else f"{cell} ({factor(times)})")
        rows.append(cells)
    return table(["", *(f"{column.title}, {column.unit}" for column in columns)], rows)


def summary(ours: Result, peers: Sequence[Result], columns: Sequence[Column] = COLUMNS) -> str:
    """Return a table: for each column, ours against the best peer's, and who is ahead."""
    rows = []
    for column in columns:
        value, rival = ours.value(column), best(column, peers)
        if value is None or rival is None:
            continue
        peer, theirs = rival
        times = ratio(column, value, theirs) or 0.0
        goal = ""
        if column.goal is not None:
            goal = f"≥ {factor(column.goal)}: {'met' if times >= column.goal else 'missed'}"
        rows.append(
            [
                column.title,
                f"{shown(value)} {column.unit}",
                f"{shown(theirs)} {column.unit} ({peer.name})",
                factor(times),
                ours.name if times > 1 else f"**{peer.name}**",
                goal,
            ]
        )
    heads = ["", ours.name, "best peer", "ratio", "ahead", "goal"]
    return table(heads, rows)


def notes(results: Sequence[Result], usual_count: int) -> str:
    """Return a list: the settings of each, a smaller drain, and why values are missing."""
    lines = []
    for result in results:
        line = f"- **{result.name}**: {result.notes}."
        if result.drain_count != usual_count:
            line += f" Bulk and drain of {result.drain_count:,} jobs."
        for reason in dict.fromkeys(result.reasons):
            line += f" {NOTHING}: {reason} (rounds: {result.reasons.count(reason)})."
        lines.append(line)
    return "\n".join(lines)


def panels(results: Sequence[Result], columns: Sequence[Column] = COLUMNS) -> list[Bars]:
    """Return the plot's panels, one for each column."""
    return [
        Bars(column.title, column.unit, {r.name: r.value(column) for r in results})
        for column in columns
    ]

"""Runs the scenarios named as arguments, or all, and prints their figures beside the goals."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import msgspec
import uvloop

from benchmarks import (
    bulk,
    coalesced,
    delayed,
    drain,
    embedded,
    embedded_huey,
    embedded_wakeup,
    floor,
    idle,
    imports,
    processes,
    round_trip,
    server_time,
    single,
    start,
)
from benchmarks.harness import RESULTS, Figure, machine, shown

SCENARIOS = {
    "floor": floor.measure,
    "bulk": bulk.measure,
    "coalesced": coalesced.measure,
    "single": single.measure,
    "drain": drain.measure,
    "server_time": server_time.measure,
    "start": start.measure,
    "round_trip": round_trip.measure,
    "delayed": delayed.measure,
    "idle": idle.measure,
    "imports": imports.measure,
    "embedded": embedded.measure,
    "embedded_wakeup": embedded_wakeup.measure,
    "embedded_huey": embedded_huey.measure,
    "processes": processes.measure,
}

ROW = "{:<40} {:>10} {:<7} {:>10} {:<7} {:>22}"


def row(figure: Figure) -> str:
    """Return a figure's line: median, goal, and the range of the runs."""
    runs = f"{shown(min(figure.runs))} to {shown(max(figure.runs))}"
    goal = str(figure.goal or "")
    return ROW.format(figure.name, shown(figure.value), figure.unit, goal, figure.verdict, runs)


def save(about: dict[str, str], figures: list[Figure]) -> None:
    """Write everything down for other programs."""
    RESULTS.parent.mkdir(exist_ok=True)
    document = {"at": datetime.now(UTC), **about, "figures": figures}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(document)))


def is_meant(word: str, name: str) -> bool:
    """Whether a word names a scenario, or its first part: ``embedded`` is ``embedded_huey`` too."""
    return name == word or name.startswith(f"{word}_")


def main() -> int:
    """Run, print and save; 2 for an unknown name, 0 whether or not the goals are met."""
    asked = sys.argv[1:] or list(SCENARIOS)
    names = [name for name in SCENARIOS if any(is_meant(word, name) for word in asked)]
    unknown = [word for word in asked if word not in SCENARIOS]
    if unknown:
        print(f"no scenario {', '.join(unknown)}: use {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    about = machine()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(ROW.format("", "median", "", "goal", "", "runs"))
    figures: list[Figure] = []
    for name in names:
        for figure in uvloop.run(SCENARIOS[name]()):
            print(row(figure), flush=True)
            figures.append(figure)
    save(about, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())

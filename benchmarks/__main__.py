"""Runs the scenarios named as arguments, or all, and prints their figures beside the goals.

    python -m benchmarks [--write] [SCENARIO…]

``--write`` puts the results of a full run into README.md.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import msgspec
import uvloop

from benchmarks import (
    across_cores,
    bulk,
    coalesced,
    crowds,
    delayed,
    drain,
    embedded,
    embedded_huey,
    embedded_wakeup,
    events,
    fairness,
    floor,
    idle,
    imports,
    instructions,
    processes,
    reading_back,
    round_trip,
    schedules,
    server_time,
    single,
    start,
    writes,
)
from benchmarks.environments import ours
from benchmarks.harness import RESULTS, Figure, machine, shown
from benchmarks.report import README, figures_table, machine_line, replace_section

SCENARIOS = {
    "floor": floor.measure,
    "bulk": bulk.measure,
    "writes": writes.measure,
    "coalesced": coalesced.measure,
    "single": single.measure,
    "drain": drain.measure,
    "fairness": fairness.measure,
    "crowds": crowds.measure,
    "server_time": server_time.measure,
    "instructions": instructions.measure,
    "reading_back": reading_back.measure,
    "start": start.measure,
    "round_trip": round_trip.measure,
    "delayed": delayed.measure,
    "events": events.measure,
    "schedules_late": schedules.measure_late,
    "schedules_many": schedules.measure_many,
    "schedules_burst": schedules.measure_burst,
    "idle": idle.measure,
    "imports": imports.measure,
    "embedded": embedded.measure,
    "embedded_wakeup": embedded_wakeup.measure,
    "embedded_huey": embedded_huey.measure,
    "processes": processes.measure,
    "across_cores": across_cores.measure,
}

ROW = "{:<40} {:>10} {:<7} {:>10} {:<7} {:>22}"


def row(figure: Figure) -> str:
    """Return a figure's line: median, goal, and the range of the runs."""
    runs = f"{shown(min(figure.runs))} to {shown(max(figure.runs))}"
    goal = str(figure.goal or "")
    return ROW.format(figure.name, shown(figure.value), figure.unit, goal, figure.verdict, runs)


def save(at: datetime, about: dict[str, str], figures: list[Figure]) -> None:
    """Write everything down for other programs."""
    RESULTS.parent.mkdir(exist_ok=True)
    document = {"at": at, **about, "figures": figures}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(document)))


def is_meant(word: str, name: str) -> bool:
    """Whether a word names a scenario, or its first part: ``embedded`` is ``embedded_huey`` too."""
    return name == word or name.startswith(f"{word}_")


def write(at: datetime, about: dict[str, str], figures: list[Figure]) -> None:
    """Put the table into the README, under a line that says when and where."""
    line = f"Measured on {at:%Y-%m-%d}: {machine_line(about)}."
    replace_section(README, "results", f"{line}\n\n{figures_table(figures)}")


def main() -> int:
    """Run, print and save; 2 for arguments that mean nothing, 0 whether or not goals are met."""
    words = sys.argv[1:]
    is_written = "--write" in words
    asked = [word for word in words if word != "--write"]
    unknown = [word for word in asked if not any(is_meant(word, name) for name in SCENARIOS)]
    if unknown:
        print(f"no scenario {', '.join(unknown)}: use {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    if is_written and asked:
        # A table of figures from different days would compare what can't be compared.
        print("--write takes a full run: name no scenario with it", file=sys.stderr)
        return 2
    at, about = datetime.now(UTC), machine(ours())
    print(machine_line(about))
    print(ROW.format("", "median", "", "goal", "", "runs"))
    figures: list[Figure] = []
    for name, measure in SCENARIOS.items():
        if asked and not any(is_meant(word, name) for word in asked):
            continue
        for figure in uvloop.run(measure()):
            print(row(figure), flush=True)
            figures.append(figure)
    save(at, about, figures)
    if is_written:
        write(at, about, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())

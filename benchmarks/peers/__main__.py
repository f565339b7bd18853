"""headrace and its peers side by side, in one run.

    python -m benchmarks.peers [--sync] [--rounds N] [--write] [NAME…]

A round measures everybody in turn, and the next one begins with the next of them. ``--sync`` takes
those that enqueue without an event loop, and what their producers see. ``--write`` puts a run of
all peers into README.md and draws its plot; every run is saved in ``results``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.environments import NAMES, SYNC_NAMES, environment, ours
from benchmarks.harness import machine, shown
from benchmarks.peers.cells import introduced, measured
from benchmarks.peers.program import Peer
from benchmarks.peers.results import (
    COLUMNS,
    COSTS,
    PRODUCERS,
    SPEEDS,
    Column,
    Result,
    compared,
    notes,
    panels,
    summary,
)
from benchmarks.report import PLOTS, README, draw_panels, machine_line, replace_section

ROUNDS = 3
RESULTS = Path(__file__).parents[1] / "results"
PLOT_COLUMNS = 3


class Comparison(msgspec.Struct, frozen=True):
    """Who is compared, in which columns.

    Attributes:
        section: of the README, and the name of what is saved.
        names: of adapters, ours first.
        columns: of the summary and of the plot.
        tables: of the peers, each of some columns.
    """

    section: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    tables: tuple[tuple[Column, ...], ...]


ALL = Comparison("peers", NAMES, COLUMNS, (SPEEDS, COSTS))
SYNC = Comparison("sync", SYNC_NAMES, PRODUCERS, (PRODUCERS,))


class Document(msgspec.Struct, frozen=True):
    """What is saved."""

    at: datetime
    machine: dict[str, str]
    rounds: int
    results: list[Result]


def measure(names: Sequence[str], rounds: int) -> list[Result]:
    """Measure everybody in turn, again and again; print each row when it is there."""
    made = [environment(name) for name in names]
    peers = [(each, introduced(each)) for each in made]
    results = {
        each.adapter: Result(about.name, each.version, about.notes, about.drain_count)
        for each, about in peers
    }
    for number in range(rounds):
        first = number % len(peers)
        for each, about in peers[first:] + peers[:first]:
            cells, result = measured(each, about), results[each.adapter]
            for key, value in cells.values.items():
                result.runs.setdefault(key, []).append(value)
            result.reasons.extend(cells.reasons)
            values = [f"{key} {shown(value)}" for key, value in cells.values.items()]
            line = ", ".join([*values, *cells.reasons])
            print(f"round {number + 1}, {about.name}: {line}", flush=True)
    return list(results.values())


def report(document: Document, comparison: Comparison) -> str:
    """Return the section of the README."""
    ours, *peers = document.results
    rounds = "one round" if document.rounds == 1 else f"medians of {document.rounds} rounds"
    place = machine_line(document.machine)
    parts = [
        f"Measured on {document.at:%Y-%m-%d}, {rounds}: {place}.",
        summary(ours, peers, comparison.columns),
        *(compared(columns, ours, peers) for columns in comparison.tables),
        notes(document.results, Peer.drain_count),
    ]
    return "\n\n".join(parts)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; a mistake ends the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--sync", action="store_true", help=f"those without an event loop: {', '.join(SYNC_NAMES)}"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument("--write", action="store_true", help="put the results into README.md")
    asked = parser.parse_args(words)
    asked.comparison = SYNC if asked.sync else ALL
    if unknown := set(asked.names) - set(asked.comparison.names):
        known = ", ".join(asked.comparison.names)
        parser.error(f"no peer {', '.join(sorted(unknown))}: use {known}")
    if asked.rounds < 1:
        parser.error(f"--rounds must be at least 1, and is {asked.rounds}")
    if asked.write and asked.names:
        parser.error("--write takes a run of all peers: name none with it")
    return asked


def main() -> int:
    """Measure, print, save and draw; 0 whoever is ahead."""
    asked = arguments(sys.argv[1:])
    comparison: Comparison = asked.comparison
    # Ours is always there, since the rest is held against it.
    first, *others = comparison.names
    names = [first, *(name for name in others if not asked.names or name in asked.names)]
    RESULTS.mkdir(exist_ok=True)
    at, about = datetime.now(UTC), {**machine(ours()), "load before": f"{os.getloadavg()[0]:.1f}"}
    print(machine_line(about), flush=True)
    document = Document(at, about, asked.rounds, measure(names, asked.rounds))
    content = msgspec.json.format(msgspec.json.encode(document))
    (RESULTS / f"{comparison.section}.json").write_bytes(content)
    section = report(document, comparison)
    print("", section, sep="\n")
    folder = PLOTS if asked.write else RESULTS
    plot = f"{comparison.section}.svg"
    bars = panels(document.results, comparison.columns)
    draw_panels(folder / plot, bars, columns=PLOT_COLUMNS)
    if asked.write:
        text = f"![The figures as bars](plots/{plot})\n\n{section}"
        replace_section(README, comparison.section, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

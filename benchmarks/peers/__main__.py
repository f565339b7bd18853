"""headrace and its peers side by side, in one run.

    python -m benchmarks.peers [--rounds N] [--write] [NAME…]

A round measures everybody in turn, and the next one begins with the next of them. ``--write`` puts
a run of all peers into README.md and draws its plot; every run is saved in ``results``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.environments import NAMES, OURS, environment, ours
from benchmarks.harness import machine, shown
from benchmarks.peers.cells import introduced, measured
from benchmarks.peers.program import Peer
from benchmarks.peers.results import (
    COSTS,
    SPEEDS,
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
        each.name: Result(about.name, each.version, about.notes, about.drain_count)
        for each, about in peers
    }
    for number in range(rounds):
        first = number % len(peers)
        for each, about in peers[first:] + peers[:first]:
            cells, result = measured(each, about), results[each.name]
            for key, value in cells.values.items():
                result.runs.setdefault(key, []).append(value)
            result.reasons.extend(cells.reasons)
            values = [f"{key} {shown(value)}" for key, value in cells.values.items()]
            line = ", ".join([*values, *cells.reasons])
            print(f"round {number + 1}, {about.name}: {line}", flush=True)
    return list(results.values())


def report(document: Document) -> str:
    """Return the section of the README."""
    ours, *peers = document.results
    rounds = "one round" if document.rounds == 1 else f"medians of {document.rounds} rounds"
    place = machine_line(document.machine)
    parts = [
        f"Measured on {document.at:%Y-%m-%d}, {rounds}: {place}.",
        summary(ours, peers),
        compared(SPEEDS, ours, peers),
        compared(COSTS, ours, peers),
        notes(document.results, Peer.drain_count),
    ]
    return "\n\n".join(parts)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; a mistake ends the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument("--write", action="store_true", help="put the results into README.md")
    asked = parser.parse_args(words)
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"no peer {', '.join(sorted(unknown))}: use {', '.join(NAMES)}")
    if asked.rounds < 1:
        parser.error(f"--rounds must be at least 1, and is {asked.rounds}")
    if asked.write and asked.names:
        parser.error("--write takes a run of all peers: name none with it")
    return asked


def main() -> int:
    """Measure, print, save and draw; 0 whoever is ahead."""
    asked = arguments(sys.argv[1:])
    # Ours is always there, since the rest is held against it.
    names = [name for name in NAMES if name == OURS or not asked.names or name in asked.names]
    RESULTS.mkdir(exist_ok=True)
    at, about = datetime.now(UTC), {**machine(ours()), "load before": f"{os.getloadavg()[0]:.1f}"}
    print(machine_line(about), flush=True)
    document = Document(at, about, asked.rounds, measure(names, asked.rounds))
    content = msgspec.json.format(msgspec.json.encode(document))
    (RESULTS / "peers.json").write_bytes(content)
    section = report(document)
    print("", section, sep="\n")
    folder = PLOTS if asked.write else RESULTS
    draw_panels(folder / "peers.svg", panels(document.results), columns=PLOT_COLUMNS)
    if asked.write:
        replace_section(README, "peers", f"![The figures as bars](plots/peers.svg)\n\n{section}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

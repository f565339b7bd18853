"""A customer with 100,000 jobs, then one with 10: how long the ten wait, beside peers.

    python -m benchmarks.peers.behind [--rounds N] [NAME…]

All jobs are there before the worker starts, so its start counts too. A round measures everybody
in turn, and the next one begins with the next of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.environments import FAIRNESS_NAMES, environment, ours
from benchmarks.harness import machine, serving
from benchmarks.peers.cells import CellFailed, Program, awaited, introduced
from benchmarks.peers.program import read_ran, read_started
from benchmarks.report import machine_line, table

MANY, FEW = 100_000, 10
ROUNDS = 3
HEADS = ("", "s until the last of the ten starts", "others run by then")


def waited(program: Program) -> tuple[float, float]:
    """Return how long until all of the few had started, in s, and how many others had run then."""
    record = program.directory / "record"
    with serving() as server:
        program.figures("bulk", server, MANY)
        program.figures("start", server, FEW)
        with program.working(server, record) as worker:
            awaited(worker, lambda: len(read_started(record)) >= FEW, f"{FEW} jobs to start")
            ran, _ = read_ran(record)
            return max(read_started(record)) / 1000, ran


def measure(names: Sequence[str], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Measure everybody in turn, again and again; print each figure when it is there."""
    made = [environment(name) for name in names]
    peers = [(each, f"{introduced(each).name} {each.version}") for each in made]
    found: dict[str, list[tuple[float, float]]] = {name: [] for _, name in peers}
    for number in range(rounds):
        first = number % len(peers)
        for each, name in peers[first:] + peers[:first]:
            with tempfile.TemporaryDirectory(prefix="headrace-behind-") as directory:
                try:
                    seconds, ran = waited(Program(each, Path(directory)))
                except CellFailed as error:
                    print(f"round {number + 1}, {name}: {error}", flush=True)
                    continue
            found[name].append((seconds, ran))
            print(f"round {number + 1}, {name}: {seconds:.2f} s, {ran:,} others", flush=True)
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.behind")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FAIRNESS_NAMES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    asked = parser.parse_args()
    print(machine_line(machine(ours())), flush=True)
    found = measure(asked.names or FAIRNESS_NAMES, asked.rounds)
    rows = []
    for name, runs in found.items():
        seconds, ran = zip(*runs, strict=True) if runs else ((float("nan"),), (float("nan"),))
        rows.append([name, f"{statistics.median(seconds):.2f}", f"{statistics.median(ran):,.0f}"])
    print("", table(HEADS, rows), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

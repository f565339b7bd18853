"""Measures how cost grows: all parts, or those that are named."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import uvloop

from benchmarks.environments import ours
from benchmarks.growth import backlog, limits, longest, memory, plots, results, sweeps, why
from benchmarks.growth.points import Part
from benchmarks.harness import machine

PARTS = {
    "backlog": ("what lies in the queue already, besides 1,000 waiting jobs", backlog.measure),
    "queues": ("one worker, and the same 40,000 jobs spread over more", sweeps.measure_queues),
    "processes": ("40,000 jobs on one queue, and more workers", sweeps.measure_processes),
    "payloads": ("jobs with larger ones, in bytes", sweeps.measure_payloads),
    "slots": ("one worker with more of them", sweeps.measure_slots),
    "keys": ("jobs with a limit of concurrency, of more keys", limits.measure_keys),
    "turns": ("jobs whose keys take turns, of more keys", limits.measure_turns),
    "lines": ("of 1,000 keys, besides jobs that another limit holds up", limits.measure_lines),
    "why": ("the server's ms to tell why a job does not run, by the sort of answer", why.measure),
    "why-embedded": ("the same on SQLite, in ms a call", why.measure_embedded),
    "longest": ("call where jobs have limits, of no key or more", longest.measure),
    "memory": ("of the server, for each job", memory.measure),
}


def main() -> None:
    """Measure, print the tables, and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument(
        "--write", action="store_true", help="put the tables into the README, and draw the plot"
    )
    asked = parser.parse_args()
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: use {', '.join(PARTS)}")
    known = results.load()
    for name in asked.parts or PARTS:
        title, measure = PARTS[name]
        day = datetime.now(UTC).date().isoformat()
        known[name] = Part(title, day, machine(ours()), uvloop.run(measure()))
        results.save(known)
        print(f"{name}: {title}\n\n{results.table_of(name, known[name].points)}\n", flush=True)
    if asked.write:
        in_order = {name: known[name] for name in PARTS if name in known}
        results.write(in_order)
        plots.draw(in_order)


if __name__ == "__main__":
    main()

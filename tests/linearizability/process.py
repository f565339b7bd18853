"""One of several processes on one directory: it runs its clients of every history.

Run as ``python -m tests.linearizability.process ASSIGNMENT``, which is JSON. It prints a line of
JSON with what its clients saw for each history.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

import msgspec

from headrace.storage.sqlite.storage import SqliteStorage
from tests.linearizability.faults import Impatience
from tests.linearizability.runner import NOW_MS, TENANT, Kind, Plan, Told, run_clients
from tests.support.until import until

MEETING_SECONDS = 60


class Assignment(msgspec.Struct, frozen=True):
    """What a process does: every ``of``-th client of each history, beginning with ``index``."""

    directory: str
    kind: Kind
    seed: int
    histories: int
    index: int
    of: int


class Report(msgspec.Struct, frozen=True):
    """What the clients of one process saw of one history."""

    number: int
    lines: list[Told]


def arrive(own: Assignment, number: int) -> list[Path]:
    """Leave a sign of having come to a history; return those of all processes."""
    signs = [Path(own.directory) / f"history-{number}-{index}" for index in range(own.of)]
    signs[own.index].touch()
    return signs


def are_there(signs: list[Path]) -> bool:
    return all(sign.exists() for sign in signs)


async def run_all(own: Assignment) -> None:
    """Run the clients and print what they saw."""
    for number in range(own.histories):
        plan = Plan(own.kind, number, own.seed)
        clients = {
            name: (
                SqliteStorage(f"file://{own.directory}/data", clock=lambda: NOW_MS).for_tenant(
                    TENANT
                ),
                Impatience(plan.seed_of(name)),
            )
            for name in plan.names[own.index :: own.of]
        }
        signs = arrive(own, number)
        # Else one process would be done before the other's clients began.
        await until(partial(are_there, signs), within=MEETING_SECONDS)
        lines = await run_clients(plan, clients)
        for storage, _ in clients.values():
            await storage.aclose()
        sys.stdout.write(msgspec.json.encode(Report(number, lines)).decode() + "\n")


if __name__ == "__main__":
    asyncio.run(run_all(msgspec.json.decode(sys.argv[1], type=Assignment)))

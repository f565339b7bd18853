"""Runs the clients of one history, each on a storage of its own, and says what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import anyio
import msgspec

from headrace.storage.base import Storage
from tests.linearizability import fifo, limit_clients, schedules
from tests.linearizability.caller import Caller
from tests.linearizability.clients import Board, RandomClient
from tests.linearizability.faults import Faults, NoFaults
from tests.linearizability.fifo import FifoClient, Moment
from tests.linearizability.history import Line, problems_of_jobs
from tests.linearizability.limit_clients import KeyEntry, LimitClient
from tests.linearizability.schedules import Entry, ScheduleClient
from tests.model.schedules import SCHEDULES_LIMIT

TENANT = "acme"
NOW_MS = 1_800_000_000_000
"""The storages' clock stands still: what is due later never falls due within a history."""

JOB_IDS = ("a", "b", "c", "d")
MOST_CLIENTS = 5
CALLS = 34
"""Calls of all clients of a history together, so that no job id has more than 40."""

Kind = Literal["jobs", "order", "schedules", "limits"]
Client: TypeAlias = RandomClient | FifoClient | ScheduleClient | LimitClient
Told: TypeAlias = Line | Moment | Entry | KeyEntry
"""What a client tells of a call."""


class Plan(msgspec.Struct, frozen=True):
    """One history: what it is about, and from which seed its clients choose.

    Attributes:
        kind: what happens to a few job ids, or to a few schedules, or to the keys of a limit, or
            the order in which jobs are taken.
        number: of the history.
        seed: of all histories.
    """

    kind: Kind
    number: int
    seed: int

    @property
    def queue(self) -> str:
        """Each history has a queue of its own."""
        return f"{self.kind}-{self.number}"

    @property
    def names(self) -> list[str]:
        """The clients: three to five."""
        return [f"c{i}" for i in range(3 + self.number % (MOST_CLIENTS - 2))]

    @property
    def job_ids(self) -> Sequence[str]:
        """One to four ids: the fewer, the more calls meet."""
        return JOB_IDS[: 1 + self.number % len(JOB_IDS)]

    @property
    def limit(self) -> int:
        """One job of a key at once, or two."""
        return 1 + self.number % 2

    def seed_of(self, name: str) -> str:
        """Return from what a client, and what befalls it, choose."""
        return f"{self.seed}/{self.queue}/{name}"

    def client(self, name: str, storage: Storage, faults: Faults, board: Board) -> Client:
        """Return one of its clients."""
        caller = Caller(
            storage, name=name, queue=self.queue, faults=faults, seed=self.seed_of(name)
        )
        if self.kind == "order":
            return FifoClient(caller)
        if self.kind == "schedules":
            return ScheduleClient(caller, names=self.job_ids[:SCHEDULES_LIMIT])
        if self.kind == "limits":
            return LimitClient(caller, limit=self.limit)
        return RandomClient(caller, job_ids=self.job_ids, board=board)

    def problems(self, lines: list[Told]) -> list[str]:
        """Return what is wrong with all that was recorded, nothing if all is well."""
        if self.kind == "order":
            found = fifo.problems(line for line in lines if isinstance(line, Moment))
        elif self.kind == "schedules":
            found = schedules.problems(line for line in lines if isinstance(line, Entry))
        elif self.kind == "limits":
            keys = (line for line in lines if isinstance(line, KeyEntry))
            found = limit_clients.problems(keys, limit=self.limit)
        else:
            found = problems_of_jobs([line for line in lines if isinstance(line, Line)])
        return [f"{self}: {problem}" for problem in found]


async def run_clients(plan: Plan, clients: Mapping[str, tuple[Storage, Faults]]) -> list[Told]:
    """Let the named clients make their share of the calls, all at once; return what they saw."""
    board = Board()
    running = [plan.client(name, *own, board=board) for name, own in clients.items()]
    async with anyio.create_task_group() as group:
        for client in running:
            group.start_soon(client.run, CALLS // len(plan.names))
    return [line for client in running for line in client.lines]


async def look(plan: Plan, storage: Storage) -> list[Told]:
    """See what is left of every job once the clients have ended."""
    client = plan.client("last", storage, NoFaults(), board=Board())
    await client.look()
    return list(client.lines)

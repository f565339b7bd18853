"""Embedded storages that are wrong in one way each about how many jobs a queue takes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import QueueFull
from headrace.job import Verdict
from headrace.request import JobRequest
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId
from tests.model.gate_mutants import SpoilsGates


class CountsAmiss(SpoilsGates):
    """Enqueues beside a number that is wrong for so long."""

    wrong = ""
    """The statement that makes it wrong."""
    right = ""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        await self.spoil("enqueue", self.wrong)
        try:
            return await super().enqueue(queue, jobs, call=call)
        finally:
            await self.spoil("enqueue", self.right)


class TakesOneMore(CountsAmiss):
    """Takes one job more than it is set to."""

    wrong = "UPDATE queues SET max_length = max_length + 1 WHERE max_length > 0"
    right = "UPDATE queues SET max_length = max_length - 1 WHERE max_length > 0"


class CountsNobodyInLine(CountsAmiss):
    """Leaves out those that limits hold up, and successors."""

    wrong = "UPDATE queues SET blocked = blocked - 100"
    right = "UPDATE queues SET blocked = blocked + 100"


class CountsNoneOfATime(CountsAmiss):
    """Leaves out those that wait for a time."""

    wrong = "UPDATE queues SET scheduled = scheduled - 100"
    right = "UPDATE queues SET scheduled = scheduled + 100"


class StoresWhatFits(SqliteStorage):
    """Takes of a call what there is room for."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        try:
            return await super().enqueue(queue, jobs, call=call)
        except QueueFull:
            await super().enqueue(queue, jobs[:1], call=call)
            raise


class RefusesDuplicates(SqliteStorage):
    """Counts what a call asks for, and not what it brings in."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        counts = await self.stats(queue)
        limit = counts.settings.max_length
        waiting = counts.queued + counts.scheduled + counts.retrying + counts.blocked
        if limit and waiting + len(jobs) > limit:
            raise QueueFull(queue, limit=limit, waiting=waiting)
        return await super().enqueue(queue, jobs, call=call)


class PublishesIntoAFullQueue(SpoilsGates):
    """Takes what a bulk write brings in, however much waits."""

    async def publish(self, queue: str) -> int:
        await self.spoil("publish", "UPDATE queues SET max_length = -max_length")
        try:
            return await super().publish(queue)
        finally:
            await self.spoil("publish", "UPDATE queues SET max_length = -max_length")


LENGTH_MUTANTS = (
    TakesOneMore,
    CountsNobodyInLine,
    CountsNoneOfATime,
    StoresWhatFits,
    RefusesDuplicates,
    PublishesIntoAFullQueue,
)
"""Each is wrong in one way."""

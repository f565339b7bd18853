"""Embedded storages that are wrong about idempotency keys in one way each."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.job import FirstUse, Verdict, outcome_of
from headrace.request import JobRequest
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId


class ForgetsTheKeyOfACall(SqliteStorage):
    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        bare = [msgspec.structs.replace(job, idempotency_key="") for job in jobs]
        return await super().enqueue(queue, bare, call=call)


class NamesTheLaterJob(SqliteStorage):
    """Answers that the key is known, and not with which job."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        verdicts = await super().enqueue(queue, jobs, call=call)
        return [
            FirstUse(outcome_of(verdict), job.id) if isinstance(verdict, FirstUse) else verdict
            for job, verdict in zip(jobs, verdicts, strict=False)
        ]


class KeepsAKeyForAnHour(SqliteStorage):
    """Does not heed for how long a key is to be known."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        long = [msgspec.structs.replace(job, idempotency_ttl_ms=3_600_000) for job in jobs]
        return await super().enqueue(queue, long, call=call)


IDEMPOTENCY_MUTANTS = (ForgetsTheKeyOfACall, NamesTheLaterJob, KeepsAKeyForAnHour)

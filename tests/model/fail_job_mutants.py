"""Embedded storages that are wrong about fail jobs in one way each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import msgspec

from headrace.job import Verdict
from headrace.request import JobRequest
from headrace.storage.incarnations import ClaimReply, SlotsAsked
from headrace.storage.queues import SettingChanges
from headrace.storage.sqlite.engine.step import Step
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId, Settlement

OF_FAILED = "on_failed = ''"


class ForgetsTheTask(SqliteStorage):
    """Stores no task for the failures of a job."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        quiet = [msgspec.structs.replace(job, on_failed="") for job in jobs]
        return await super().enqueue(queue, quiet, call=call)


class ForgetsTheTaskOfAQueue(SqliteStorage):
    async def configure(self, queue: str, **changes: Unpack[SettingChanges]) -> None:
        changes["on_failed"] = ""
        await super().configure(queue, **changes)


class LetsFailJobsRecur(SqliteStorage):
    """Has fail jobs do as the queue says."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        verdicts = await super().settle(queue, settlements, call=call)
        await self._do("settle", _recur)
        return verdicts


class ExpiresQuietly(SqliteStorage):
    """Brings nothing where a claim finds that a job has expired."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        await self._do("claim", _quieten)
        return await super().claim(queue, call=call, nonce=nonce, slots=slots)


class ForgetsTheArguments(SqliteStorage):
    """Brings fail jobs without the arguments of the failed ones."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        verdicts = await super().settle(queue, settlements, call=call)
        await self._do("settle", _forget)
        return verdicts


def _recur(step: Step) -> int:
    sql = f"UPDATE jobs SET on_failed = NULL WHERE {OF_FAILED}"  # noqa: S608
    return step.db.execute(sql).rowcount


def _quieten(step: Step) -> int:
    sql = "UPDATE jobs SET on_failed = '' WHERE on_failed IS NOT NULL AND expires_at_ms > 0"
    return step.db.execute(sql).rowcount


def _forget(step: Step) -> int:
    sql = f"UPDATE jobs SET payload = x'' WHERE {OF_FAILED} AND payload IS NOT NULL"  # noqa: S608
    return step.db.execute(sql).rowcount


FAIL_JOB_MUTANTS = (
    ForgetsTheTask,
    ForgetsTheTaskOfAQueue,
    LetsFailJobsRecur,
    ExpiresQuietly,
    ForgetsTheArguments,
)

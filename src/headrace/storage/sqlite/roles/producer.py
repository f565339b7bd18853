"""The role of what brings jobs in, and asks how they end, on SQLite."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.job import CancelOutcome, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.base import Channel
from headrace.storage.sqlite.blocking import SqliteChannel
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import cancel, enqueue, watch
from headrace.storage.values import CallId, End


class SqliteProducer(SqliteRole):
    """What brings jobs in, and asks how they end."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        return await self._do(
            "enqueue", lambda s: enqueue.enqueue(s, self._name(queue), jobs, call)
        )

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        name = self._name(queue)
        return await self._do(
            "cancel",
            lambda s: cancel.cancel(s, name, job_ids, only_next=only_next, states=states),
        )

    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        return await self._do(
            "watch", lambda s: watch.watch(s, self._name(queue), job_ids, channel)
        )

    def open_channel(self) -> Channel:
        return SqliteChannel(self.engine(), self.clock)

"""The role of what brings jobs in, and asks how they end, on Redis."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.job import CancelOutcome, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.base import Channel
from headrace.storage.redis.blocking import RedisChannel
from headrace.storage.redis.calls import producer
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import CallId, End


class RedisProducer(RedisRole):
    """What brings jobs in, and asks how they end."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        root = self._root(queue)
        if not self.shared.is_introduced(root):
            await self._introduce(queue)
        return await self._client.run(producer.enqueue(root, jobs, call))

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        call = producer.cancel(self._root(queue), job_ids, only_next=only_next, states=states)
        return await self._client.run(call)

    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        return await self._client.run(producer.watch(self._root(queue), job_ids, channel))

    def open_channel(self) -> Channel:
        return RedisChannel(self.shared.address, self.tenant)

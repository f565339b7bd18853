"""The role of what runs jobs, on Redis."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.job import Claim
from headrace.storage.base import Beater, Waiter
from headrace.storage.incarnations import ClaimReply, IncarnationInfo, SlotsAsked
from headrace.storage.redis.blocking import RedisBeater, RedisWaiter
from headrace.storage.redis.blocking_client import BlockingClient
from headrace.storage.redis.calls import consumer
from headrace.storage.redis.roles.role import RedisRole
from headrace.storage.values import CallId, Report, Settlement


class RedisConsumer(RedisRole):
    """What runs jobs."""

    async def register(self, queue: str, worker: IncarnationInfo) -> None:
        await self._introduce_if_room(queue)
        await self._client.run(consumer.register(self._root(queue), worker))

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        return await self._client.run(consumer.claim(self._root(queue), call, nonce, slots))

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        return await self._client.run(consumer.settle(self._root(queue), settlements, call))

    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        await self._client.run(consumer.put_back(self._root(queue), jobs))

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        return await self._client.run(consumer.report(self._root(queue), reports))

    async def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        return await self._client.run(consumer.held(self._root(queue), incarnation))

    async def retire(self, queue: str, incarnation: str) -> int:
        return await self._client.run(consumer.retire(self._root(queue), incarnation))

    def open_waiter(self, queue: str, incarnation: str, lane: str) -> Waiter:
        return RedisWaiter(
            self.shared.address, self._client, tenant=self.tenant, queue=queue, lane=lane
        )

    def open_beater(self, *, timeout_s: float) -> Beater:
        # Whether the server may evict was looked at before this incarnation came to beat.
        client = BlockingClient(
            self.shared.address,
            self.shared.client.library,
            allow_eviction=True,
            timeout_s=timeout_s,
            client_name="headrace-beat",
        )
        return RedisBeater(client, self.tenant)

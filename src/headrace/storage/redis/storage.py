"""The storage on Redis or Valkey: one method a verb, one function call each."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from headrace.errors import StorageFull
from headrace.job import (
    CancelOutcome,
    Claim,
    EnqueueOutcome,
    ErrorInfo,
    Job,
    JobRecord,
    JobState,
)
from headrace.storage.base import Beater, Channel, Waiter
from headrace.storage.redis import calls, keys, reports
from headrace.storage.redis.blocking import RedisChannel, RedisWaiter
from headrace.storage.redis.client import Address, AsyncClient, SyncClient
from headrace.storage.redis.damage import damage_findings
from headrace.storage.redis.doctor import diagnose, remove_libraries
from headrace.storage.redis.library import Library, library
from headrace.storage.redis.lost import restore_lost
from headrace.storage.values import (
    OUTPUT_PAGE_LIMIT,
    Beat,
    BeatReply,
    CallId,
    ClaimReply,
    End,
    EventPage,
    Finding,
    IncarnationInfo,
    OutputPage,
    Page,
    QueueSettings,
    QueueStats,
    Repaired,
    Report,
    Settlement,
)

INTRODUCED_FOR_S = 30.0
"""How long a queue is taken for listed once it was put on the tenant's list."""


class RedisBeater:
    """Beats from a thread, over a connection of its own."""

    def __init__(self, client: SyncClient, tenant: str) -> None:
        self._client = client
        self._tenant = tenant

    def beat(self, queue: str, incarnation: str) -> BeatReply:
        return self._client.run(calls.beat(keys.root(self._tenant, queue), incarnation))

    def close(self) -> None:
        self._client.close()


class RedisStorage:
    """Every verb on one server, for one event loop.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
        tenant: whose queues.
        allow_eviction: use a server that may evict keys.
        source: the function library, another one for tests.

    Raises:
        InvalidOption: the URL can't be read.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str,
        allow_eviction: bool = False,
        source: Library | None = None,
    ) -> None:
        self.tenant = tenant
        self._address = Address(url)
        self._library = source or library()
        self._client = AsyncClient(self._address, self._library, allow_eviction=allow_eviction)
        self._known_queues: set[str] = set()

    def _root(self, queue: str) -> str:
        return keys.root(self.tenant, queue)

    async def _introduce(self, queue: str) -> None:
        """Put the queue on the tenant's list, which is in another slot than the queue itself.

        The list may be lost while this process lives, so that the next call after a while says it
        again.
        """
        await self._client.prepare("SADD", keys.queues(self.tenant), queue)
        if queue not in self._known_queues:
            self._known_queues.add(queue)
            loop = asyncio.get_running_loop()
            loop.call_later(INTRODUCED_FOR_S, self._known_queues.discard, queue)

    # Producer

    async def enqueue(
        self, queue: str, jobs: Sequence[Job], *, call: CallId
    ) -> list[EnqueueOutcome]:
        if queue not in self._known_queues:
            await self._introduce(queue)
        return await self._client.run(calls.enqueue(self._root(queue), jobs, call))

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> list[CancelOutcome]:
        return await self._client.run(calls.cancel(self._root(queue), job_ids))

    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        return await self._client.run(calls.watch(self._root(queue), job_ids, channel))

    def open_channel(self) -> Channel:
        return RedisChannel(self._address, self.tenant)

    # Consumer

    async def register(self, queue: str, worker: IncarnationInfo) -> None:
        # A full server takes no new name, and yet a worker must drain it; producers left the name.
        with suppress(StorageFull):
            await self._introduce(queue)
        await self._client.run(calls.register(self._root(queue), worker))

    async def claim(
        self, queue: str, *, call: CallId, nonce: str, slots: Mapping[str, int]
    ) -> ClaimReply:
        return await self._client.run(calls.claim(self._root(queue), call, nonce, slots))

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        return await self._client.run(calls.settle(self._root(queue), settlements, call))

    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        await self._client.run(calls.put_back(self._root(queue), jobs))

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        return await self._client.run(calls.report(self._root(queue), reports))

    async def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        return await self._client.run(calls.held(self._root(queue), incarnation))

    async def retire(self, queue: str, incarnation: str) -> int:
        return await self._client.run(calls.retire(self._root(queue), incarnation))

    def open_waiter(self, queue: str, incarnation: str, lane: str) -> Waiter:
        return RedisWaiter(
            self._address,
            self._client,
            root=self._root(queue),
            source=keys.wake(self.tenant, queue, lane),
            target=keys.woken(self.tenant, queue),
        )

    def open_beater(self, *, timeout_s: float) -> Beater:
        return RedisBeater(
            SyncClient(self._address, self._library, timeout_s=timeout_s), self.tenant
        )

    # Maintenance

    async def beats(self, queue: str) -> dict[str, Beat]:
        flat = await self._client.command("HGETALL", self._root(queue) + ":beats")
        return calls.read_beats(flat)

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        return await self._client.run(calls.reap(self._root(queue), incarnation, seen, error))

    async def forget(self, queue: str, incarnation: str) -> bool:
        return await self._client.run(calls.forget(self._root(queue), incarnation))

    async def prune(self, queue: str, *, cursor: str = "") -> str:
        return await self._client.run(calls.prune(self._root(queue), cursor))

    async def repair(
        self,
        queue: str,
        *,
        cursor: str = "",
        lanes: Collection[str] = (),
        is_full: bool = False,
    ) -> Repaired:
        await self._introduce(queue)
        root = self._root(queue)
        restored = 0
        if is_full:
            restored = await restore_lost(self._client, root)
            cursor = calls.WHOLE_WALK
        done = await self._client.run(calls.repair(root, cursor, lanes))
        return Repaired(done.cursor, done.mended + restored)

    # Inspector

    async def queues(self) -> list[str]:
        names = await self._client.command("SMEMBERS", keys.queues(self.tenant))
        return reports.read_queues(names)

    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        return await self._client.run(reports.get(self._root(queue), job_id))

    async def output(
        self, queue: str, job_id: str, *, after: str = "", limit: int = OUTPUT_PAGE_LIMIT
    ) -> OutputPage:
        return await self._client.run(reports.output(self._root(queue), job_id, after, limit))

    async def list_jobs(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = 50
    ) -> Page:
        return await self._client.run(reports.list_jobs(self._root(queue), state, cursor, limit))

    async def stats(self, queue: str) -> QueueStats:
        return await self._client.run(reports.stats(self._root(queue)))

    async def workers(self, queue: str) -> list[IncarnationInfo]:
        return await self._client.run(reports.workers(self._root(queue)))

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        entries = await self._client.command(
            "XRANGE", self._root(queue) + ":events", f"({after}", "+", "COUNT", limit
        )
        return reports.read_events(entries)

    # Admin

    async def pause(self, queue: str) -> None:
        await self._client.run(reports.steer("pause", self._root(queue)))

    async def resume(self, queue: str) -> None:
        await self._client.run(reports.steer("resume", self._root(queue)))

    async def configure(self, queue: str, settings: QueueSettings) -> None:
        await self._client.run(reports.configure(self._root(queue), settings))

    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        return await self._client.run(reports.redrive(self._root(queue), job_ids))

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        return await self._client.run(reports.purge(self._root(queue), state, job_ids))

    # Doctor

    async def check(self) -> None:
        await self._client.command("PING")

    async def diagnose(self) -> list[Finding]:
        found = await diagnose(self._client, self._library)
        return [*found, *await damage_findings(self._client.command, self.tenant)]

    async def tidy(self) -> list[str]:
        return await remove_libraries(self._client, self._library)

    async def aclose(self) -> None:
        await self._client.aclose()

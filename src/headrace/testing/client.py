"""A client that has no worker to wait for: it runs the jobs itself, and keeps no tasks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from typing import Any, Protocol

from headrace.admit import admit
from headrace.client import Client, DecoderOf, replying
from headrace.errors import WaitTimeout
from headrace.handle import JobClient, JobHandle, result_of
from headrace.job import EnqueueOutcome, Job
from headrace.storage.base import Channel, Storage
from headrace.storage.values import End, OutputPage
from headrace.waiting import is_end, whole


class Driver(Protocol):
    """What the client needs of a kit: it runs jobs and lets time pass."""

    async def run_inline(self, jobs: Iterable[Job]) -> None:
        """Run what was just enqueued, if the kit is to."""

    async def run_to_end(
        self, queue: str, job_id: str, channel: Channel, *, timeout_ms: int | None
    ) -> End:
        """Run and let time pass until a job has ended."""

    async def run_towards(self, end: End) -> None:
        """Run something, or let time pass, so that a job which has not ended comes nearer to it."""


class KitClient(Client):
    """One event loop's side of an app in a kit.

    Args:
        driver: the kit.
        storage: as for `Client`.
        decoder_of: as for `Client`.
        jobs: as for `Client`.
        retry_for_s: as for `Client`.
    """

    def __init__(
        self,
        driver: Driver,
        storage: Storage,
        *,
        decoder_of: DecoderOf,
        jobs: JobClient,
        retry_for_s: float,
    ) -> None:
        super().__init__(storage, decoder_of=decoder_of, jobs=jobs, retry_for_s=retry_for_s)
        self._driver = driver

    async def submit(self, job: Job) -> JobHandle[Any]:
        """Store one job, and run it in inline mode."""
        handle = await super().submit(job)
        await self._driver.run_inline([job])
        return handle

    async def submit_many(self, jobs: Iterable[Job]) -> list[JobHandle[Any]]:
        """Store jobs, and run them in inline mode."""
        stored: list[Job] = []

        def noted() -> Iterable[Job]:
            for job in jobs:
                stored.append(job)
                yield job

        handles = await super().submit_many(noted())
        await self._driver.run_inline(stored)
        return handles

    async def submit_and_wait(self, job: Job, *, timeout_ms: int | None = None) -> Any:
        """Store one job, run it and return its result."""
        request = admit(job)
        async with aclosing(self.storage.open_channel()) as channel:
            await channel.receive()  # it is subscribed
            handle = await super().send(replying(request, channel.name))
            if handle.outcome is EnqueueOutcome.COMPLETED:
                return await handle.result()
            if handle.outcome is EnqueueOutcome.DUPLICATE and request.idempotency_key:
                return await handle.result(None if timeout_ms is None else timeout_ms / 1000)
            try:
                end = await self._driver.run_to_end(
                    request.queue, request.id, channel, timeout_ms=timeout_ms
                )
            except WaitTimeout as error:
                error.handle = handle
                raise
            return result_of(handle, await whole(self.storage, end))

    async def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Run a job and return its end."""
        async with aclosing(self.storage.open_channel()) as channel:
            await channel.receive()  # it is subscribed
            end = await self._driver.run_to_end(queue, job_id, channel, timeout_ms=timeout_ms)
            return await whole(self.storage, end)

    async def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return what a job has put out since a cursor, and before that run it if need be."""
        end, page = await super().output(queue, job_id, after=after)
        if not page.chunks and not is_end(end):
            await self._driver.run_towards(end)
            end, page = await super().output(queue, job_id, after=after)
        return end, page

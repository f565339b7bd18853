"""Sends an app's jobs: past what is to be called before, to the client of the running loop."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from headrace.admit import admit
from headrace.client import iterated
from headrace.clients import Clients
from headrace.draft import JobDraft, Preparer
from headrace.errors import StorageError
from headrace.handle import JobHandle
from headrace.job import Job
from headrace.request import JobRequest, fresh
from headrace.storage.limits import BATCH_LIMIT
from headrace.task import is_awaitable


class Sender:
    """What an app and its tasks send jobs by.

    Args:
        clients: the app's.
        preparers: called with each job before it is sent, in order; more may come.
    """

    def __init__(self, clients: Clients, preparers: Sequence[Preparer]) -> None:
        self._clients = clients
        self._preparers = preparers

    def submit(self, job: Job) -> Awaitable[JobHandle[Any]]:
        """Store one job made by ``task.job(...)``, as `Task.enqueue` does: await it."""
        if self._preparers:
            return self._submit_prepared(job)
        # A coroutine of its own would cost 0.5 µs a job, and so would one more in `Task.enqueue`.
        return self._clients.current().submit(job)

    async def _submit_prepared(self, job: Job) -> JobHandle[Any]:
        return await self._clients.current().submit(await self._prepared(job))

    async def submit_and_wait(self, job: Job, *, timeout_ms: int | None = None) -> Any:
        """Store one job and return its result, as `Task.enqueue_and_wait` does."""
        asked = await self._prepared(job) if self._preparers else job
        return await self._clients.current().submit_and_wait(asked, timeout_ms=timeout_ms)

    async def submit_many(self, jobs: Iterable[Job]) -> list[JobHandle[Any]]:
        """Store many jobs, as `App.enqueue_many` does."""
        if self._preparers:
            return await self._submit_many_prepared(iterated(jobs))
        return await self._clients.current().submit_many(jobs)

    async def _submit_many_prepared(self, jobs: Iterator[Job]) -> list[JobHandle[Any]]:
        handles: list[JobHandle[Any]] = []
        while block := list(islice(jobs, BATCH_LIMIT)):
            prepared = [await self._prepared(job) for job in block]
            try:
                handles += await self._clients.current().submit_many(prepared)
            except StorageError as error:
                error.accepted = (*handles, *error.accepted)
                raise
        return handles

    async def requests(self, jobs: Sequence[Job]) -> list[JobRequest]:
        """Return what is to be sent of some jobs, past what is to be called before.

        Raises:
            UsageError: one is no job, or a value is not valid.
        """
        if self._preparers:
            return [await self._prepared(job) for job in jobs]
        return list(map(admit, jobs))

    async def _prepared(self, job: Job) -> JobRequest:
        """Return what is to be sent of a job, after all that is to be called before.

        Raises:
            UsageError: it is no job, or a value is not valid.
        """
        draft = JobDraft(admit(job))
        for prepare in self._preparers:
            result = prepare(draft)
            if is_awaitable(result):
                await result
        return fresh(draft.request())

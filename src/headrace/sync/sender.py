"""Sends a sync app's jobs: past what is to be called before, to the client of the process."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from headrace.admit import admit
from headrace.client import iterated
from headrace.draft import JobDraft, Preparer
from headrace.errors import UsageError
from headrace.job import Job
from headrace.plain import shown
from headrace.request import JobRequest, fresh
from headrace.storage.steps import at_once
from headrace.sync.clients import ProcessClients
from headrace.sync.handle import SyncJobHandle
from headrace.task import is_awaitable


class SyncSender:
    """What a sync app and its tasks send jobs by.

    Args:
        clients: the app's.
        preparers: called with each job before it is sent, in order; more may come.
    """

    def __init__(self, clients: ProcessClients, preparers: Sequence[Preparer]) -> None:
        self._clients = clients
        self._preparers = preparers

    def submit(self, job: Job) -> SyncJobHandle[Any]:
        """Store one job made by ``task.job(...)``, as `SyncTask.enqueue` does."""
        if self._preparers:
            job = self._prepared(job)
        return self._clients.current().submit(job)

    def submit_and_wait(self, job: Job, *, timeout_ms: int | None) -> Any:
        """Store one job and return its result, as `SyncTask.enqueue_and_wait` does."""
        if self._preparers:
            job = self._prepared(job)
        return self._clients.current().submit_and_wait(job, timeout_ms=timeout_ms)

    def submit_many(self, jobs: Iterable[Job]) -> list[SyncJobHandle[Any]]:
        """Store many jobs, as `SyncApp.enqueue_many` does."""
        if self._preparers:
            jobs = map(self._prepared, iterated(jobs))
        return self._clients.current().submit_many(jobs)

    def requests(self, jobs: Sequence[Job]) -> list[JobRequest]:
        """Return what is to be sent of some jobs, past what is to be called before.

        Raises:
            UsageError: one is no job, or a value is not valid.
        """
        return list(map(self._prepared if self._preparers else admit, jobs))

    def _prepared(self, job: Job) -> JobRequest:
        """Return what is to be sent of a job, after all that is to be called before.

        Raises:
            UsageError: it is no job, a value is not valid, or one of them waits for an event loop.
        """
        draft = JobDraft(admit(job))
        for prepare in self._preparers:
            result = prepare(draft)
            if is_awaitable(result):
                _finish(result, prepare)
        return fresh(draft.request())


def _finish(result: Awaitable[Any], prepare: Preparer) -> None:
    async def finished() -> None:
        await result

    try:
        at_once(finished())
    except RuntimeError as error:
        if "event loop" not in str(error):
            raise
        raise UsageError(
            f"the before_enqueue function {shown(prepare)} waits for an event loop, and a SyncApp "
            "has none: make it a `def`, or an `async def` that only awaits what is there already"
        ) from error

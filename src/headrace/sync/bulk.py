"""A bulk write of code without an event loop: many jobs of one queue, all of them or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from headrace.admit import close_unsent
from headrace.bulk import OneWrite, blocks, read_report
from headrace.client import iterated
from headrace.clock import Duration
from headrace.errors import StorageError, UsageError
from headrace.job import DEFAULT_QUEUE, Job
from headrace.request import JobRequest
from headrace.staging import Phase, WriteTerms, write_terms
from headrace.storage.limits import DEFAULT_STAGE_TTL_MS, DEFAULT_WRITE_KEEP_MS
from headrace.storage.steps import at_once
from headrace.sync.clients import ProcessClients
from headrace.sync.sender import SyncSender
from headrace.views.writes import WriteReport
from headrace.writing import WriteClient


class SyncBulkWrite(OneWrite):
    """A write, to be used in a ``with`` block; made by `SyncApp.bulk`, and otherwise a `BulkWrite`.

    Threads may share it.

    Args:
        terms: of the write.
        client: returns the client of the moment.
        requests: returns what is to be sent of some jobs, past what is to be called before.
    """

    def __init__(
        self,
        terms: WriteTerms,
        client: Callable[[], WriteClient],
        requests: Callable[[Sequence[Job]], list[JobRequest]],
    ) -> None:
        super().__init__(terms, client)
        self._requests = requests
        self._turn = threading.Lock()

    def add(self, job: Job) -> None:
        """Add a job made by ``task.job(...)``, see `BulkWrite.add`.

        Raises:
            UsageError, StageLost, StorageError: as `BulkWrite.add`.
        """
        self._check_open(job)
        if not self.is_known:
            self._add((job,))

    def add_many(self, jobs: Iterable[Job]) -> None:
        """Add jobs in their order, see `BulkWrite.add_many`.

        Raises:
            UsageError, StageLost, StorageError: as `BulkWrite.add`.
        """
        self._check_open(jobs)
        source = blocks(iterated(jobs))
        try:
            while not self.is_known and (block := next(source, None)):
                self._add(block)
        except UsageError:
            close_unsent(jobs)
            raise

    def _add(self, jobs: Sequence[Job]) -> None:
        requests = self._requests(jobs)
        with self._turn:
            self._staging.add(requests)
            at_once(self._writing.send())

    def __enter__(self) -> Self:
        at_once(self._writing.begin())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._turn:
            self._staging.phase = Phase.ENDED
            if error is not None:
                self._discard()
                return
            try:
                at_once(self._writing.commit())
            except BaseException:
                self._discard()
                raise
            self._report = at_once(self._writing.publish())

    def _discard(self) -> None:
        """Drop what was staged, if that is possible; else it ends by time."""
        with suppress(StorageError):
            at_once(self._writing.discard())


class SyncBulkWrites:
    """What a sync app has for them."""

    _clients: ProcessClients
    _sender: SyncSender

    def bulk(
        self,
        write_id: str,
        *,
        queue: str = DEFAULT_QUEUE,
        batch: int = 0,
        replace_ended: bool = True,
        stage_ttl: Duration = DEFAULT_STAGE_TTL_MS / 1000,
        keep: Duration = DEFAULT_WRITE_KEEP_MS / 1000,
    ) -> SyncBulkWrite:
        """Return a write of many jobs, all or none, that may be run again; nothing is sent.

        Use it as ``with app.bulk("import-7") as bulk: bulk.add_many(jobs)``, see `App.bulk`.

        Args:
            write_id: 1 to 256 bytes of UTF-8 without control characters; unique in its queue.
            queue: of all its jobs.
            batch: for writes that go on: a number that rises with each of their commits, from 0.
            replace_ended: as for `enqueue_many`.
            stage_ttl: how long what is staged is kept, 6 hours by default, at least a minute.
            keep: how long the write is known, 7 days by default, at least a minute.

        Raises:
            InvalidOption: one of them is not valid.
        """
        terms = write_terms(
            write_id,
            queue=queue,
            batch=batch,
            replace_ended=replace_ended,
            stage_ttl=stage_ttl,
            keep=keep,
        )
        return SyncBulkWrite(terms, self._clients.current, self._sender.requests)

    def write_report(self, write_id: str, *, queue: str = DEFAULT_QUEUE) -> WriteReport | None:
        """Return what became of a write, None of one that is not known, see `App.write_report`.

        Raises:
            InvalidOption, StorageRefused, StorageError: as `App.write_report`.
        """
        return at_once(read_report(lambda: self._clients.current().storage, write_id, queue))

"""A bulk write: many jobs of one queue, all of them or none, under an id that may be run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio

from headrace.admit import close_unsent
from headrace.client import iterated
from headrace.clients import Clients
from headrace.clock import Duration
from headrace.errors import StorageError, UsageError
from headrace.job import DEFAULT_QUEUE, Job, check_name, check_text
from headrace.one_process import OfOneProcess
from headrace.plain import shown
from headrace.sender import Sender
from headrace.staging import Phase, WriteTerms, write_terms
from headrace.storage.base import BulkWriter, check_writes_in_bulk
from headrace.storage.limits import (
    BATCH_LIMIT,
    BATCH_LIMIT_BYTES,
    DEFAULT_STAGE_TTL_MS,
    DEFAULT_WRITE_KEEP_MS,
)
from headrace.views.writes import WriteReport
from headrace.writing import WriteClient, Writing

LAST_WORDS_S = 5.0
"""How long a write that failed may take to discard what it has staged; else that ends by time."""


class OneWrite(OfOneProcess, instead="a write has one writer: call app.bulk(...) there"):
    """What a write is whose block an event loop runs, or a thread.

    Args:
        terms: of the write.
        client: returns the client of the moment.
    """

    def __init__(self, terms: WriteTerms, client: Callable[[], WriteClient]) -> None:
        self._terms = terms
        self._writing = Writing(terms, client)
        self._staging = self._writing.staging
        self._report: WriteReport | None = None

    def __repr__(self) -> str:
        kind, terms = type(self).__name__, self._terms
        return f"<{kind} {shown(terms.write_id)} in queue {terms.queue!r}>"

    @property
    def is_known(self) -> bool:
        """Whether an earlier run had committed it, so that what is added is dropped."""
        return self._staging.is_known

    @property
    def report(self) -> WriteReport:
        """What became of it, once the block has ended.

        Raises:
            UsageError: it has not ended, or it failed.
        """
        if self._report is None:
            raise UsageError(f"{self!r} has no report: it has not ended, or it failed")
        return self._report

    def _check_open(self, unsent: object) -> None:
        try:
            self._staging.check_open()
        except UsageError:
            close_unsent(unsent)
            raise


class BulkWrite(OneWrite):
    """A write, to be used in an ``async with`` block; made by `App.bulk`.

    What is added is staged as the block goes on, in calls of up to 500 jobs, and is no job yet: no
    worker, listing or count sees it. The end of the block commits it, in one step. Until then
    nothing has happened, and an exception or a cancellation discards it all; from then on all of it
    will be there, whatever happens to this process. Then the block publishes it: it waits until all
    jobs are stored. What it can't publish the workers' sweeps do.

    Coroutines may share it; jobs are stored in the order in which they were added. It holds no more
    in memory than two calls may bring, of 500 jobs and 4 MiB of arguments each.
    """

    def __init__(self, terms: WriteTerms, *, sender: Sender, clients: Clients) -> None:
        super().__init__(terms, clients.current)
        self._sender = sender
        self._sending = anyio.Lock()

    async def add(self, job: Job) -> None:
        """Add a job made by ``task.job(...)``; it may wait until earlier ones are staged.

        Raises:
            UsageError: it is no job, is of another queue or not valid, or the block has not begun
                or has ended. That job is not added, and the others are.
            StageLost: what was staged has outlived ``stage_ttl``.
            StorageError: earlier jobs could not be staged; they are tried again with the next one.
        """
        self._check_open(job)
        if not self.is_known:
            self._staging.add(await self._sender.requests((job,)))
            await self._send()

    async def add_many(self, jobs: Iterable[Job]) -> None:
        """Add jobs in their order; see `add`.

        ``jobs`` may be a generator and is read as the storage takes them, so a million need no
        list. It is not read at all where the write is known.

        Raises:
            UsageError, StageLost, StorageError: as `add`; jobs before the one that is not valid
                may have been added.
        """
        self._check_open(jobs)
        source = blocks(iterated(jobs))
        try:
            while not self.is_known and (block := next(source, None)):
                self._staging.add(await self._sender.requests(block))
                await self._send()
        except UsageError:
            close_unsent(jobs)
            raise

    async def __aenter__(self) -> Self:
        await self._writing.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._staging.phase = Phase.ENDED
        if error is not None:
            await self._discard()
            return
        try:
            async with self._sending:
                await self._writing.commit()
        except BaseException:
            await self._discard()
            raise
        self._report = await self._writing.publish()

    async def _send(self) -> None:
        """Stage what fills a call; coroutines that share the write do so one after the other."""
        if self._staging.next_call():
            async with self._sending:
                await self._writing.send()

    async def _discard(self) -> None:
        """Drop what was staged, if that is possible soon."""
        with anyio.move_on_after(LAST_WORDS_S, shield=True), suppress(StorageError):
            await self._writing.discard()


def blocks(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Yield jobs in their order, at a time about as many as a call may bring."""
    block: list[Job] = []
    size = 0
    for job in jobs:
        block.append(job)
        payload = getattr(job, "payload", None)  # which nobody has checked yet
        size += len(payload) if isinstance(payload, bytes) else 0
        if len(block) == BATCH_LIMIT or size >= BATCH_LIMIT_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


class BulkWrites:
    """What an app has for them."""

    _sender: Sender
    _clients: Clients

    def bulk(
        self,
        write_id: str,
        *,
        queue: str = DEFAULT_QUEUE,
        batch: int = 0,
        replace_ended: bool = True,
        stage_ttl: Duration = DEFAULT_STAGE_TTL_MS / 1000,
        keep: Duration = DEFAULT_WRITE_KEEP_MS / 1000,
    ) -> BulkWrite:
        """Return a write of many jobs, all or none, that may be run again; nothing is sent.

        Use it as ``async with app.bulk("import-7") as bulk: await bulk.add_many(jobs)``. Whatever
        goes wrong, run it again with the same id: of what runs under one id one is committed, and
        any other brings in nothing. A job whose id is there is a duplicate, as for `enqueue_many`.

        Args:
            write_id: 1 to 256 bytes of UTF-8 without control characters; unique in its queue.
            queue: of all its jobs.
            batch: for writes that go on, as a stream's do: a number that rises with each of their
                commits, from 0. One that is not above the last committed brings in nothing.
            replace_ended: whether a job takes the place of a failed or cancelled one of its id, as
                it does by default for `enqueue_many`; with False that is a duplicate, too.
            stage_ttl: how long what is staged is kept after the last call that staged something, 6
                hours by default, at least a minute. What a killed process has staged goes then.
            keep: how long the write is known after all of it was published, 7 days by default, at
                least a minute. Run later under the same id, it is a new one.

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
        return BulkWrite(terms, sender=self._sender, clients=self._clients)

    async def write_report(
        self, write_id: str, *, queue: str = DEFAULT_QUEUE
    ) -> WriteReport | None:
        """Return what became of a write, None of one that was never committed or is kept no more.

        Raises:
            InvalidOption: the id or the queue is not valid.
            StorageRefused: the storage has no bulk writes.
            StorageError: the storage can't be reached.
        """
        return await read_report(lambda: self._clients.current().storage, write_id, queue)


async def read_report(
    storage: Callable[[], BulkWriter], write_id: str, queue: str
) -> WriteReport | None:
    """Return what became of a write, see `BulkWrites.write_report`."""
    write_id = check_text(write_id, what="write id")
    queue = check_name(queue, what="queue")
    opened = storage()
    check_writes_in_bulk(opened)
    info = await opened.read_write(queue, write_id)
    return None if info is None else WriteReport.of(queue, info, is_known=True)

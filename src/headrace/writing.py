"""The calls of a bulk write, from the look at its beginning to the last piece that is published.

They wait for nothing but the client's calls, so an event loop may run them, or a thread that steps
them at once over a storage that blocks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

from headrace.errors import ReplyLost, StageLost, StorageFull, StorageUnavailable
from headrace.plain import shown
from headrace.staging import Staging, WriteTerms
from headrace.storage.base import BulkWriter, check_writes_in_bulk
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo
from headrace.views.writes import WriteReport

T = TypeVar("T")


LOOKS_EVERY = 20
"""Calls of ``publish`` after which who asks hears how far a write is, though no stage has ended."""


def unheard(_info: WriteInfo) -> None:
    """Do nothing."""


class WriteClient(Protocol):
    """What a write is written through."""

    @property
    def storage(self) -> BulkWriter:
        """The storage, one of another distribution may lack the role."""

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that does no harm when it comes twice, until it is answered."""


class Writing:
    """One writer's calls for a write; at most one of them at a time.

    Args:
        terms: of the write.
        client: returns the client of the moment.

    Attributes:
        staging: what it is to send.
    """

    def __init__(self, terms: WriteTerms, client: Callable[[], WriteClient]) -> None:
        self.staging: Staging = Staging(terms)
        self._terms = terms
        self._client = client

    async def begin(self) -> None:
        """Look whether the write is known.

        Raises:
            UsageError: it has begun before.
            StorageRefused: the storage has no bulk writes.
            StorageError: it is not answered.
        """
        check_writes_in_bulk(self._client().storage)
        self.staging.begin()
        info = await self._read()
        self.staging.is_known = info is not None and info.batch >= self._terms.batch

    async def send(self) -> None:
        """Stage what fills a call, one call after the other."""
        terms = self._terms
        while jobs := self.staging.next_call():
            client, info = self._client(), self.staging.info
            length = await client.ask(
                partial(
                    client.storage.stage,
                    terms.queue,
                    terms.write_id,
                    info.token,
                    jobs,
                    before=info.length,
                    ttl_ms=terms.stage_ttl_ms,
                )
            )
            self.staging.staged(length)

    async def commit(self) -> None:
        """Stage the rest, and commit, unless the write is known."""
        if self.staging.is_known:
            return
        self.staging.fill()
        await self.send()
        await self.commit_stages(self.staging.stages())

    async def commit_stages(self, stages: Sequence[StageInfo]) -> None:
        """Commit what one writer or several have staged; drop it if the write is known.

        Args:
            stages: at most `STAGES_LIMIT`.

        Raises:
            StageLost: one of them isn't there any more; nothing was committed.
            StorageError: it is not answered: committed or not, it may be called again.
        """
        client, terms = self._client(), self._terms
        outcome = await client.ask(
            partial(
                client.storage.commit,
                terms.queue,
                terms.write_id,
                stages,
                batch=terms.batch,
                keep_ms=terms.keep_ms,
            )
        )
        if outcome is CommitOutcome.KNOWN:
            # By another writer; or by this one, whose answer was lost: then its stages stay.
            dropped = await client.ask(self._discarding(client, stages))
            self.staging.is_known = dropped == len(stages)

    async def discard(self) -> None:
        """Drop what was staged, at one try; whatever was committed stays."""
        await self.discard_stages([self.staging.info])

    async def discard_stages(self, stages: Sequence[StageInfo]) -> None:
        """Drop what one writer or several have staged, as `discard`; at most `STAGES_LIMIT`."""
        await self._discarding(self._client(), stages)()

    def _discarding(
        self, client: WriteClient, stages: Sequence[StageInfo]
    ) -> Callable[[], Awaitable[int]]:
        terms, tokens = self._terms, [stage.token for stage in stages]
        return partial(client.storage.discard, terms.queue, terms.write_id, tokens)

    async def publish(self, on_progress: Callable[[WriteInfo], None] = unheard) -> WriteReport:
        """Publish until all of the write is stored, or the storage does not take it.

        Args:
            on_progress: told now and then how much is.

        Raises:
            StageLost: it was deleted with its queue.
            StorageError: it can't be told what became of it.
        """
        info = await self._look()
        left, calls = -1, 0
        # It is committed: whatever the storage can't do now, the workers' sweeps do later.
        with suppress(StorageFull, StorageUnavailable, ReplyLost):
            while left and not info.is_published:
                client, before = self._client(), left
                left = await client.ask(partial(client.storage.publish, self._terms.queue))
                calls += 1
                # Where a stage has ended it may be the write's last one.
                is_due = on_progress is not unheard and calls % LOOKS_EVERY == 0
                if not left or left != before or is_due:
                    info = await self._look()
                    on_progress(info)
        return WriteReport.of(self._terms.queue, info, is_known=self.staging.is_known)

    async def _look(self) -> WriteInfo:
        info = await self._read()
        if info is None:
            raise StageLost(
                f"write {shown(self._terms.write_id)} was committed, and is not known any more: "
                "it was deleted with its queue, or its keep is over"
            )
        return info

    async def _read(self) -> WriteInfo | None:
        client, terms = self._client(), self._terms
        return await client.ask(partial(client.storage.read_write, terms.queue, terms.write_id))

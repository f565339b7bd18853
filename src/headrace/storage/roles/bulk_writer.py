"""The role of what writes many jobs, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.request import JobRequest
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo
from headrace.storage.verbs import reads, writes


class BulkWriter(Protocol):
    """A write is stages of one queue that are committed together, and then published.

    What is staged is no job yet: it has no state, and is in no count, list or event. A stage
    belongs to one queue and write, and is named by a token that no other writer uses. It has an end
    by time until it is committed; one whose time is over is as if it had never been. `commit` is
    the one point at which all of a write becomes certain. From then on anybody may publish it, a
    piece at a time, and every worker's sweep does.
    """

    @writes(grows=True, is_durable=False)
    async def stage(
        self,
        queue: str,
        write_id: str,
        token: str,
        jobs: Sequence[JobRequest],
        *,
        before: int,
        ttl_ms: int,
    ) -> int:
        """Append jobs to a stage and return its length then.

        A stage that is longer than ``before`` has been told these jobs already, as an answer was
        lost: nothing is appended. Either way it lives for ``ttl_ms`` from now on; that is all that
        happens where there are no jobs.

        Args:
            queue: in which the jobs will be.
            write_id: 1 to 256 bytes, as a job's id.
            token: a name, of one writer at its one attempt.
            jobs: at most `BATCH_LIMIT`.
            before: the length that the last call returned, 0 for the first. What it counts is known
                to the storage alone; it rises with each call that appends.
            ttl_ms: how long the stage is kept without a commit, at least 1.

        Raises:
            StageLost: there is less than ``before``, or the stage is committed; nothing changed.
            StorageFull: there is no room; nothing changed.
        """

    @writes()
    async def commit(
        self,
        queue: str,
        write_id: str,
        stages: Sequence[StageInfo],
        *,
        batch: int = 0,
        keep_ms: int,
    ) -> CommitOutcome:
        """Commit stages of a write, all or none: they have no end by time any more.

        A write that has committed this batch or a later one is ``known``: nothing changes. So a
        call whose answer was lost may be repeated, and a write that is run again is there once.
        Else its stages stand in line to be published, in their order, behind those of earlier
        commits.

        Args:
            queue: of all the stages.
            write_id: the write; batches of one write are committed one after the other.
            stages: at most `STAGES_LIMIT`, of different tokens; none is an empty write.
            batch: rises with each commit of a write, from 0.
            keep_ms: how long the write is known once all that it committed is published, at least
                1. The last commit counts.

        Raises:
            StageLost: a stage isn't there, of another length, named twice or committed already;
                nothing changed.
        """

    @writes(grows=True, is_durable=False)
    async def publish(self, queue: str) -> int:
        """Store the next jobs that are committed, and return how many stages are left in the queue.

        These are the jobs of one call of `stage`, the first that is left of the oldest stage. They
        are stored as `Producer.enqueue` does, but every id counts as the caller's own: what was
        stored before, by a call that failed half way, is met as a duplicate. ``delay_ms`` and
        ``expires_in_ms`` count from now. With the last jobs of its last stage a write is published.

        Raises:
            StorageFull: there is no room; nothing changed.
            QueueFull: the queue's ``max_length`` is reached; nothing changed. While fewer wait, all
                jobs of a call are let in.
        """

    @writes(is_durable=False)
    async def discard(self, queue: str, write_id: str, tokens: Sequence[str]) -> int:
        """Drop stages of a write that are not committed, and return how many these were.

        Args:
            queue: of the stages.
            write_id: the write.
            tokens: at most `STAGES_LIMIT`; one that is not there, or committed, is passed over.
        """

    @reads
    async def read_write(self, queue: str, write_id: str) -> WriteInfo | None:
        """Return what became of a write, over all its batches; None: it isn't known.

        One that never committed isn't, nor one whose ``keep_ms`` is over since it was published.
        """

"""The role of what keeps a queue in order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from headrace.job import ErrorInfo
from headrace.storage.incarnations import Beat
from headrace.storage.values import Repaired
from headrace.storage.verbs import reads, writes


class Maintenance(Protocol):
    """What keeps a queue in order when others died. Any worker may call these at any time."""

    @reads
    async def beats(self, queue: str) -> dict[str, Beat]:
        """Return the beat count and lease of every incarnation that is known or condemned."""

    @writes()
    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        """Condemn an incarnation whose beat count still is ``seen``, and take its jobs back.

        The count decides in this step: a beat in between wins, and nothing changes. A condemned one
        stays so, whatever its count was, and is listed until `forget`.

        Up to 200 of its jobs a call each get one stall and ``error`` in their history, with the
        storage's time and the attempt. One that was asked to stop ends cancelled, one with
        ``max_stalls`` becomes a dead letter ``stalled``, any other goes to the head of its tier. A
        token that the incarnation holds is passed on. The call that condemns it leaves an event.

        Returns:
            How many jobs are left for another call; None: it has beaten, or is unknown.
        """

    @writes()
    async def forget(self, queue: str, incarnation: str) -> bool:
        """Delete a condemned incarnation with all that is kept of it; whether it is gone.

        False, and nothing changed: it is not condemned, or owns jobs. True also for an unknown one.
        """

    @writes(is_durable=False)
    async def prune(self, queue: str, *, cursor: str = "") -> str:
        """Delete up to 200 ended records of each kind that are over their time, and old calls.

        Readers of events that have been silent for `READER_TTL_MS` are dropped.

        `Inspector.stats` counts ended records until they are pruned. It never touches a record that
        is in time or not terminal, nor a new job with the id of an old one.

        Args:
            queue: the queue; it need not be there.
            cursor: what the last call returned, "" for the first.

        Returns:
            The cursor for the next call, "" at the end.
        """

    @writes()
    async def repair(
        self,
        queue: str,
        *,
        cursor: str = "",
        lanes: Collection[str] = (),
        is_full: bool = False,
    ) -> Repaired:
        """Bring what is derived from records back to what is there.

        Where records were lost behind the storage's back, places that stand for no job go, with
        what lies beside the record, and counts are those of the jobs that are there. A queue in
        order is not changed. A call looks at 500 places at most. A count is set by a call that has
        seen all that it counts, or at the end of a walk during which no job moved.

        One walk of a queue goes on at a time, and rests for five seconds; a call that would begin
        another one meanwhile does nothing. A walk looks at all active jobs, and at delayed and
        ready ones where there are more or fewer places than their count says: those of lost records
        come to light when their time or turn comes.

        Args:
            queue: the queue; it need not be there.
            cursor: what the last call returned, "" for the first.
            lanes: those that the caller knows of.
            is_full: with the first call, begin now and look at all that is stored: a queued or
                delayed job that has lost its place waits again, an active one goes back to its
                worker's, or to the head of its tier where nobody knows that worker.
        """

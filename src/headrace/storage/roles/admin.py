"""The role of what steers queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Unpack

from headrace.job import JobState
from headrace.storage.queues import SettingChanges
from headrace.storage.verbs import writes


class Admin(Protocol):
    """What operators steer."""

    @writes()
    async def pause(self, queue: str) -> None:
        """Let claims bring nothing. Active jobs go on, and jobs are taken in.

        The queue is on the tenant's list from then on, so that it is seen to be paused.
        """

    @writes()
    async def resume(self, queue: str) -> None:
        """Let claims bring jobs again, and leave tokens."""

    @writes()
    async def configure(self, queue: str, **changes: Unpack[SettingChanges]) -> None:
        """Change what the queue keeps of ended jobs and of events, or how many jobs it takes.

        What isn't named stays, so that two who change different settings at once both have their
        way. One setting at least is named.

        A lowered number is reached in steps: each call that ends jobs deletes at most 100 records
        more than it ends. What is active beyond a lowered ``max_active`` goes on, and what waits
        beyond a lowered ``max_length`` stays. Tokens are left where a raised one lets jobs start.
        """

    @writes(repeats=True)
    async def acknowledge(
        self, queue: str, reader: str, stream_id: str, *, number: int = 0
    ) -> None:
        """Note that a reader has seen a queue's events up to an entry, and that it lives.

        The first time makes the reader, and puts the queue on the tenant's list. While there is
        one, entries that one of them has not acknowledged are kept, up to the settings'
        ``events_cap``. What all have acknowledged is trimmed down to the settings' ``events``, in
        bounded steps. A reader's place only rises: an earlier one changes nothing but says that
        the reader lives, and one behind all entries is that of the last. `Maintenance.prune` drops
        readers that have acknowledged nothing for `READER_TTL_MS`.

        Args:
            queue: the queue; it need not be there.
            reader: a name, as of a queue.
            stream_id: of the entry; "0": nothing is seen, so that all that is kept is held.
            number: of the last event seen in that entry; 0: it has seen all of them. A lower one
                than that of the entry's last keeps the entry for it.

        Raises:
            InvalidOption: that is no id of an entry.
            TooManyReaders: there are `READERS_LIMIT`; nothing changed.
        """

    @writes()
    async def forget_reader(self, queue: str, reader: str) -> bool:
        """Drop a reader, and hold nothing back for it; return whether there was one."""

    @writes(grows=True)
    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        """Send dead letters to the tails of their tiers, in this order; return how many were.

        Attempts, stalls, error history, expiry, reason, the request to stop and channels are gone;
        the epoch stays, and so does what the last attempt said of itself. Ids of other jobs are
        passed over.

        Raises:
            StorageFull: there is no room; nothing changed.
        """

    @writes()
    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        """Delete jobs that are in ``state``, with all that belongs to them; return how many.

        Jobs that have moved on are spared, and active ones and successors always. Each leaves an
        event. Channels of jobs that had not ended are told, with ``state`` None.
        """

    @writes()
    async def delete_queue(self, queue: str, *, is_forced: bool = False) -> int | None:
        """Delete a queue in which there is no job, and take it off the tenant's list.

        Settings, limits with what their rates are owed, events and their readers, what workers have
        said of tasks, tokens, and stages that are committed and not published go with it, with
        their writes; statistics, producers' calls, other stages and writes that are published end
        by their age. It is a new queue that the next job or worker makes. A producer that has used
        it within the last half minute may bring it back to the list only after that time. Who
        follows its events hears of the new one's, but for those of the very millisecond in which
        the old one went.

        Args:
            queue: the queue; it need not be there.
            is_forced: incarnations go too; a worker that lives registers anew.

        Returns:
            How much is left for another call, 0: it is gone. None: there is a job in it, also an
            ended one that is not pruned yet, or an incarnation that is known or condemned; nothing
            changed.
        """

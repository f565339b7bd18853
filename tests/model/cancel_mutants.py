"""Storages that are wrong in one way about which jobs a cancel spares."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.job import CancelOutcome, JobState
from headrace.storage.sqlite.storage import SqliteStorage


class Misreads(SqliteStorage):
    """Takes the states for others."""

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        taken = self.taken(set(states)) if states else ()
        return await super().cancel(queue, job_ids, only_next=only_next, states=taken)

    def taken(self, states: set[JobState]) -> set[JobState]:
        """Return those that it takes them for."""
        return states


class CancelsInAnyState(Misreads):
    def taken(self, states: set[JobState]) -> set[JobState]:
        return set()


class SparesWhatIsBlocked(Misreads):
    def taken(self, states: set[JobState]) -> set[JobState]:
        return states - {JobState.BLOCKED} or {JobState.COMPLETED}


class StopsTheActiveForItsNext(Misreads):
    """Asks an active job to stop, too, where what follows it is to go."""

    def taken(self, states: set[JobState]) -> set[JobState]:
        return states | {JobState.ACTIVE} if JobState.BLOCKED in states else states


class TakesRetriesForScheduledJobs(Misreads):
    def taken(self, states: set[JobState]) -> set[JobState]:
        return states | {JobState.RETRYING} if JobState.SCHEDULED in states else states


CANCEL_MUTANTS = (
    CancelsInAnyState,
    SparesWhatIsBlocked,
    StopsTheActiveForItsNext,
    TakesRetriesForScheduledJobs,
)

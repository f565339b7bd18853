"""Cancels many jobs of a queue: which of them, in bounded calls, and what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from headrace.clock import Duration, WallClock, datetime_of, duration_ms
from headrace.errors import InvalidOption, StorageError
from headrace.job import CancelOutcome, JobState
from headrace.plain import plain_text, shown
from headrace.settings import check_count
from headrace.storage.base import Producer
from headrace.storage.batches import moved
from headrace.views.cancelled import CancelReport
from headrace.views.jobs import JobSummary

CANCELLABLE = (
    JobState.SCHEDULED,
    JobState.RETRYING,
    JobState.BLOCKED,
    JobState.QUEUED,
    JobState.ACTIVE,
)
"""In the order in which a job passes through them: one that goes on is not missed."""

Listing = Callable[[JobState], AsyncIterator[JobSummary]]
"""Yields the jobs of a queue that are in a state."""


class CancelFilter(msgspec.Struct, frozen=True):
    """Which jobs are to be cancelled.

    Attributes:
        states: those in one of these.
        created_before: only those that are older, None for all.
        limit: at most so many, None for all.
    """

    states: tuple[JobState, ...] = CANCELLABLE
    created_before: datetime | None = None
    limit: int | None = None

    async def choose(self, listing: Listing) -> list[tuple[JobState, str]]:
        """Return the jobs that are there now, each with the state in which it was listed last."""
        chosen: dict[tuple[str, bool], JobState] = {}
        for state in self.states:
            async for job in listing(state):
                if self.created_before is not None and job.created_at >= self.created_before:
                    continue
                # What is blocked may follow an active job, which has the same id.
                chosen[job.id, state is JobState.BLOCKED] = state
                if len(chosen) == self.limit:
                    return _by_state(chosen)
        return _by_state(chosen)

    def takes(self, state: JobState | None) -> Collection[JobState]:
        """Return out of which states those are taken that were listed in one; () for any."""
        if state is JobState.BLOCKED:
            # What is active under that id was perhaps not chosen.
            return [each for each in self.states if each is not JobState.ACTIVE]
        return () if state is None or self.states == CANCELLABLE else self.states


def _by_state(chosen: Mapping[tuple[str, bool], JobState]) -> list[tuple[JobState, str]]:
    return [(state, job_id) for (job_id, _), state in chosen.items()]


def cancel_filter(
    *,
    states: Iterable[JobState | str] | None,
    older_than: Duration | None,
    limit: int | None,
    clock: WallClock,
) -> CancelFilter:
    """Check what is said of which jobs are meant.

    Raises:
        InvalidOption: a state is none in which a job can be cancelled, or a value is out of bounds.
    """
    wanted = CANCELLABLE if states is None else _check_states(states)
    created_before = None
    if older_than is not None:
        created_before = datetime_of(clock() - duration_ms(older_than, name="older_than"))
    if limit is not None:
        limit = check_count(limit, name="limit", most=2**62)
    return CancelFilter(wanted, created_before, limit)


def _check_states(states: Iterable[JobState | str]) -> tuple[JobState, ...]:
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise InvalidOption(f"states={shown(states)}: pass a list of states, as in ['queued']")
    said = [plain_text(state) for state in states]
    known = ", ".join(CANCELLABLE)
    for state in said:
        if state not in CANCELLABLE:
            raise InvalidOption(f"no job can be cancelled in state {shown(state)}: use {known}")
    if not said:
        raise InvalidOption(f"states is empty: leave it out for all, or use some of {known}")
    return tuple(state for state in CANCELLABLE if state in said)


async def cancel_jobs(
    storage: Producer,
    queue: str,
    chosen: Iterable[tuple[JobState | None, str]],
    among: CancelFilter,
) -> CancelReport:
    """Cancel jobs of a queue, 500 in a call.

    Args:
        storage: what has them.
        queue: their queue.
        chosen: their ids, each with the state in which it was listed, None for whatever it is in.
        among: by what they were chosen.

    Raises:
        StorageError: the storage did not do it all; its ``report`` says what is done.
    """
    by_state: dict[JobState | None, list[str]] = {}
    for state, job_id in chosen:
        by_state.setdefault(state, []).append(job_id)
    matched = sum(map(len, by_state.values()))
    verdicts: Counter[CancelOutcome] = Counter()
    try:
        for state, ids in by_state.items():
            for batch in moved(ids):
                verdicts.update(await cancel_some(storage, queue, state, batch, among))
    except StorageError as error:
        error.report = CancelReport.of(queue, matched, verdicts)
        raise
    return CancelReport.of(queue, matched, verdicts)


async def cancel_some(
    storage: Producer,
    queue: str,
    state: JobState | None,
    job_ids: Sequence[str],
    among: CancelFilter,
) -> list[CancelOutcome]:
    """Cancel as many jobs of one state as a call may bring."""
    states = among.takes(state)
    if not states:  # a storage of another distribution may know nothing of them
        return await storage.cancel(queue, job_ids)
    return await storage.cancel(queue, job_ids, states=states)

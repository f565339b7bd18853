"""Records outcomes: what finished while the last call was in flight goes along in the next one.

While the storage is away the same batch is repeated with the same number, and the rest waits here;
there are never more than the worker has slots, since claims pause meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from headrace.errors import StorageError
from headrace.events import AttemptEnded, ClaimLost, Emit, WorkerEvent
from headrace.job import ClaimedJob, ErrorInfo
from headrace.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    PutBack,
    Retried,
    Snoozed,
    Stalled,
    Struck,
)
from headrace.repeat import repeat_until_answered
from headrace.storage.base import Consumer
from headrace.storage.batches import fitting
from headrace.storage.limits import MOVED_A_CALL
from headrace.storage.values import CallId, Settlement

BACKED_UP_AFTER_S = 1.0

_no_error = ErrorInfo(type="", message="")


class Settler:
    """The outbox of one incarnation on one queue.

    Args:
        storage: where to.
        queue: the queue's name.
        incarnation: whose claims these are.
        emit: told of every outcome once it is recorded.
        on_gone: called when the storage doesn't know the incarnation any more.
    """

    def __init__(
        self,
        storage: Consumer,
        *,
        queue: str,
        incarnation: str,
        emit: Emit,
        on_gone: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._queue = queue
        self._incarnation = incarnation
        self._emit = emit
        self._on_gone = on_gone
        self._pending: deque[tuple[ClaimedJob, Settlement]] = deque()
        self._sending: list[tuple[ClaimedJob, Settlement]] = []
        self._has_work = asyncio.Event()
        self._turn = asyncio.Lock()
        self._number = 0
        self._failing_since: float | None = None

    @property
    def is_backed_up(self) -> bool:
        """Whether outcomes could not be written for over a second, so that claims should pause."""
        since = self._failing_since
        return since is not None and asyncio.get_running_loop().time() - since > BACKED_UP_AFTER_S

    def add(self, job: ClaimedJob, outcome: Outcome, run_ms: int) -> None:
        """Take an outcome."""
        self._pending.append((job, Settlement(job.id, job.claim, run_ms, outcome)))
        self._has_work.set()

    def holds(self) -> set[str]:
        """Return the ids whose outcomes are not recorded yet."""
        return {job.id for job, _ in [*self._pending, *self._sending]}

    async def drain(self) -> None:
        """Record everything, whether or not `run` still does."""
        while self._pending or self._sending:
            await self.settle_once()

    async def run(self) -> None:
        """Record outcomes for ever."""
        while True:
            await self._has_work.wait()
            await self.settle_once()
            if not self._pending:
                self._has_work.clear()

    async def settle_once(self) -> None:
        """Record one batch, however long the storage is away; one call at a time.

        A call that was cancelled on its way is repeated with its own number.
        """
        async with self._turn:
            if not self._sending:
                self._sending = self._take()
                self._number += 1
            if not self._sending:
                return
            try:
                verdicts = await self._send([settlement for _, settlement in self._sending])
            except StorageError:
                # It can't be recorded; the sweep will find the jobs and put them back.
                self._sending = []
                raise
            if verdicts is None:
                self._pending.clear()
                self._on_gone()
                verdicts = [False] * len(self._sending)
            for (job, settlement), is_recorded in zip(self._sending, verdicts, strict=True):
                self._emit(_event(job, settlement) if is_recorded else _lost(job))
            self._sending = []

    def _take(self) -> list[tuple[ClaimedJob, Settlement]]:
        parts = ((1, _size_of(settlement.outcome)) for _, settlement in self._pending)
        count = fitting(parts, most=MOVED_A_CALL)
        return [self._pending.popleft() for _ in range(count)]

    async def _send(self, settlements: list[Settlement]) -> list[bool] | None:
        call = CallId(self._incarnation, self._number)
        verdicts = await repeat_until_answered(
            partial(self._storage.settle, self._queue, settlements, call=call),
            on_failure=self._note_failure,
        )
        self._failing_since = None
        return verdicts

    def _note_failure(self, _error: StorageError) -> None:
        if self._failing_since is None:
            self._failing_since = asyncio.get_running_loop().time()


def _size_of(outcome: Outcome) -> int:
    return len(outcome.result) if isinstance(outcome, Completed) else 0


def _lost(job: ClaimedJob) -> WorkerEvent:
    return ClaimLost(job_id=job.id, task=job.task, queue=job.queue, start=job.claim.epoch)


def _event(job: ClaimedJob, settlement: Settlement) -> WorkerEvent:
    outcome_name = reason = ""
    retry_in_ms = 0
    error = _no_error
    match settlement.outcome:
        case Completed():
            outcome_name = "completed"
        case Retried(delay_ms, error):
            outcome_name, retry_in_ms = "retrying", delay_ms
        case Snoozed(delay_ms, reason):
            outcome_name, retry_in_ms = "snoozed", delay_ms
        case Failed(why, error):
            outcome_name, reason = "failed", why.value
        case Cancelled(_, why):
            outcome_name, reason = "cancelled", why
        case PutBack(delay_ms, error):
            outcome_name, retry_in_ms = "put_back", delay_ms
        case Stalled(error):
            outcome_name = "stalled"
        case Struck(reason):
            outcome_name = "struck"
    return AttemptEnded(
        job_id=job.id,
        task=job.task,
        queue=job.queue,
        start=job.claim.epoch,
        outcome=outcome_name,
        duration_ms=settlement.run_ms,
        error_type=error.type,
        error=error.message,
        traceback=error.traceback,
        reason=reason,
        retry_in_ms=retry_in_ms,
    )

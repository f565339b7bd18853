"""Brings the jobs of threads to the storage: one by one, or many with two calls in flight.

A lost answer is asked for again with the same number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from headrace.batching import WINDOW
from headrace.client import chunks, iterated
from headrace.job import Job, Verdict
from headrace.outage import ClientOutage
from headrace.repeat import Doubt, repeat_blocking
from headrace.request import JobRequest
from headrace.storage.blocking import BlockingStorage
from headrace.storage.steps import Ahead, at_once
from headrace.storage.values import CallId
from headrace.sync.numbers import CallNumbers, NumberPool

Stored = tuple[Sequence[JobRequest], list[Verdict]]
"""The jobs of one call, and what became of each."""


class Enqueues:
    """The enqueues of one process, each in the thread of its caller.

    Args:
        storage: where to.
        retry_for_s: how long a call is repeated before its error is raised. A refusal is raised at
            once; after a lost answer every error is a `ReplyLost`.
        outage: hears of each call that is not answered.
    """

    def __init__(
        self, storage: BlockingStorage, *, retry_for_s: float, outage: ClientOutage
    ) -> None:
        self._storage = storage
        self._retry_for_s = retry_for_s
        self._outage = outage
        self._numbers = NumberPool()

    def one(self, job: JobRequest) -> Verdict:
        """Store one job that was admitted."""
        numbers = self._numbers.take()
        flight = _Flight(self._storage, numbers.next(job.queue), (job,))
        [outcome] = self._answered(flight.outcomes)
        self._numbers.give_back(numbers)
        return outcome

    def many(self, jobs: Iterable[Job]) -> Iterator[Stored]:
        """Store jobs in chunks, each chunk whole or not at all, and yield each that is stored."""
        return self.in_calls(chunks(iterated(jobs)))

    def in_calls(self, calls: Iterable[Sequence[JobRequest]]) -> Iterator[Stored]:
        """Store jobs that were admitted, in calls that their maker has split; else as `many`.

        Args:
            calls: each of one queue, and of as many jobs and bytes as a call may bring.
        """
        numbers = self._numbers.take()
        with self._storage.in_line() as line:
            yield from self._in_flight(iter(calls), numbers, line)
        self._numbers.give_back(numbers)

    def _in_flight(
        self, calls: Iterator[Sequence[JobRequest]], numbers: CallNumbers, line: BlockingStorage
    ) -> Iterator[Stored]:
        # A first call may have to load the library, and the second must not overtake it.
        window = 1
        ahead: deque[_Flight] = deque()
        while True:
            try:
                chunk = next(calls, None)
            except Exception:
                # Who makes the jobs has failed; what is on its way is stored all the same.
                yield from map(self._landed, ahead)
                raise
            if chunk is None:
                break
            if len(ahead) == window:
                yield self._landed(ahead.popleft())
                window = WINDOW
            ahead.append(_Flight(line, numbers.next(chunk[0].queue), chunk).sent())
        yield from map(self._landed, ahead)

    def _landed(self, flight: _Flight) -> Stored:
        return flight.jobs, self._answered(flight.outcomes)

    def _answered(self, call: Callable[[], list[Verdict]]) -> list[Verdict]:
        with Doubt() as doubt:
            outcomes = repeat_blocking(
                call,
                on_failure=doubt.note,
                on_pause=self._outage.waits,
                for_s=self._retry_for_s,
            )
        if self._outage.began_at is not None:
            self._outage.ended()
        return outcomes


class _Flight:
    """One numbered call, which may be sent before its answer is asked for, and repeated."""

    __slots__ = ("_ahead", "_steps", "jobs")

    def __init__(self, storage: BlockingStorage, call: CallId, jobs: Sequence[JobRequest]) -> None:
        self.jobs: Sequence[JobRequest] = jobs
        self._steps = partial(storage.enqueue, jobs[0].queue, jobs, call=call)
        self._ahead: Ahead[list[Verdict]] | None = None

    def sent(self) -> _Flight:
        """Send it, and return it."""
        self._ahead = Ahead(self._steps())
        return self

    def outcomes(self) -> list[Verdict]:
        """Return the answer to it, if it was sent; later make the call anew each time."""
        ahead, self._ahead = self._ahead, None
        return at_once(self._steps()) if ahead is None else ahead.result()

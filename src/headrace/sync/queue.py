"""One queue as its operators see it, from code without an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Literal, TypeVar

from headrace.clock import Duration
from headrace.job import JobState
from headrace.named_task import NamedTask
from headrace.one_process import QUEUE, OfOneProcess
from headrace.queues import Queue
from headrace.storage.steps import at_once
from headrace.strike import Value
from headrace.views.cancelled import CancelReport
from headrace.views.jobs import JobEvent, JobSummary
from headrace.views.limits import QueueGate, QueueLimit
from headrace.views.outcomes import ExportedJob, JobOutcome
from headrace.views.queues import QueueReader, QueueStats, QueueWorker
from headrace.views.strikes import QueueStrike

T = TypeVar("T")


class SyncQueue(OfOneProcess, instead=QUEUE):
    """A queue by name; made by `SyncApp.queue`. Each method is that of `Queue`, and blocks."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __repr__(self) -> str:
        return f"<SyncQueue {self.name!r}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self._queue.name

    def stats(self) -> QueueStats:
        """Return counts now, see `Queue.stats`."""
        return at_once(self._queue.stats())

    def workers(self) -> list[QueueWorker]:
        """Return the workers that serve this queue."""
        return at_once(self._queue.workers())

    def pause(self, task: NamedTask | str | None = None) -> None:
        """Stop workers from claiming, see `Queue.pause`.

        Args:
            task: only jobs of this task, itself or its name.

        Raises:
            InvalidOption: that is no name of a task.
            TooManyStrikes: the queue has 100 strikes, its paused tasks among them.
        """
        at_once(self._queue.pause(task))

    def resume(self, task: NamedTask | str | None = None) -> None:
        """Let workers claim again, see `Queue.resume`.

        Args:
            task: jobs of this task, itself or its name.

        Raises:
            InvalidOption: that is no name of a task.
        """
        at_once(self._queue.resume(task))

    def strike(
        self,
        task: NamedTask | str | None = None,
        *,
        where: Mapping[str, Value] | None = None,
        action: Literal["wait", "cancel"] = "wait",
    ) -> str:
        """Have jobs not be run until that is lifted, see `Queue.strike`.

        Args:
            task: jobs of this task, itself or its name.
            where: only jobs whose arguments have these values.
            action: ``"wait"`` or ``"cancel"``.

        Raises:
            InvalidOption: neither a task nor a condition is said, or a value is not valid.
            TooManyStrikes: the queue has 100 strikes, its paused tasks among them.
        """
        return at_once(self._queue.strike(task, where=where, action=action))

    def strikes(self) -> list[QueueStrike]:
        """Return the strikes of the queue, see `Queue.strikes`."""
        return at_once(self._queue.strikes())

    def lift(self, strike: str) -> bool:
        """Lift a strike, see `Queue.lift`.

        Args:
            strike: its id.

        Raises:
            InvalidOption: that is no id of a strike.
        """
        return at_once(self._queue.lift(strike))

    def configure(
        self,
        *,
        history: int | None = None,
        dead_letters: int | None = None,
        dead_letter_ttl: Duration | None = None,
        events: int | None = None,
        events_cap: int | None = None,
        on_failed: NamedTask | str | None = None,
        max_active: int | None = None,
        max_length: int | None = None,
        weight: int | None = None,
        aging: int | None = None,
    ) -> QueueStats:
        """Change how the queue is set, see `Queue.configure`.

        Args:
            history: completed and cancelled records.
            dead_letters: their number.
            dead_letter_ttl: how long one is kept.
            events: entries of the event stream.
            events_cap: entries of it while a reader has not acknowledged them.
            on_failed: the task of the job that a dead letter brings whose own job names none.
            max_active: jobs that are active at once.
            max_length: jobs that wait at once.
            weight: its share of the slots of workers that serve other queues too.
            aging: of so many jobs that start one is of a lower priority than the best that waits.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        return at_once(
            self._queue.configure(
                history=history,
                dead_letters=dead_letters,
                dead_letter_ttl=dead_letter_ttl,
                events=events,
                events_cap=events_cap,
                on_failed=on_failed,
                max_active=max_active,
                max_length=max_length,
                weight=weight,
                aging=aging,
            )
        )

    def limits(self) -> list[QueueLimit]:
        """Return the limits that the queue knows, see `Queue.limits`."""
        return at_once(self._queue.limits())

    def set_limit(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
    ) -> None:
        """Set what a limit allows of each key, see `Queue.set_limit`.

        Args:
            name: the limit's.
            concurrency: most jobs of a key that may be active at once.
            rate: how many jobs of a key may start in a time.
            burst: how many may start at once after a pause.

        Raises:
            InvalidOption: a value is out of bounds, or neither concurrency nor rate is said.
        """
        at_once(self._queue.set_limit(name, concurrency=concurrency, rate=rate, burst=burst))

    def reset_limit(self, name: str) -> None:
        """Let a limit be what its tasks declare again, see `Queue.reset_limit`.

        Raises:
            InvalidOption: the name is not valid.
        """
        at_once(self._queue.reset_limit(name))

    def gate(self, name: str, key: str | int | None = None) -> QueueGate:
        """Return how one key of a limit stands, see `Queue.gate`.

        Args:
            name: the limit's.
            key: the value of the parameter that is its key.

        Raises:
            InvalidOption: the name is not valid.
            InvalidArguments: the key is not.
        """
        return at_once(self._queue.gate(name, key))

    def jobs(
        self,
        state: JobState | str,
        *,
        task: NamedTask | str | None = None,
        limit: int | None = None,
    ) -> Iterator[JobSummary]:
        """Yield the jobs in ``state``, page by page, see `Queue.jobs`.

        Args:
            state: one of `JobState`.
            task: only jobs of this task, itself or its name.
            limit: at most this many, None for all.
        """
        return each(self._queue.jobs(state, task=task, limit=limit))

    def events(self, *, after: str | None = None, reader: str | None = None) -> Iterator[JobEvent]:
        """Yield the kept events, oldest first, up to now, see `Queue.events`.

        Args:
            after: read on behind the entry of this stream id.
            reader: read on behind what this reader has acknowledged.

        Raises:
            InvalidOption: ``after`` is no stream id, ``reader`` is no name, or both are said.
        """
        return each(self._queue.events(after=after, reader=reader))

    def acknowledge(self, reader: str, seen: JobEvent | str) -> None:
        """Say that a reader has seen the events up to one, see `Queue.acknowledge`.

        Args:
            reader: its name, one for each pipeline.
            seen: the last event that is done with, or the stream id of its entry.

        Raises:
            InvalidOption: that is no name, no stream id, or an event of another queue.
            TooManyReaders: the queue has 100 readers.
        """
        at_once(self._queue.acknowledge(reader, seen))

    def readers(self) -> list[QueueReader]:
        """Return the readers of the events, see `Queue.readers`."""
        return at_once(self._queue.readers())

    def forget_reader(self, reader: str) -> bool:
        """Drop a reader, see `Queue.forget_reader`; return whether there was one.

        Raises:
            InvalidOption: that is no name.
        """
        return at_once(self._queue.forget_reader(reader))

    def outcomes(self, *job_ids: str) -> list[JobOutcome]:
        """Return how jobs have ended, or stand, in the order of their ids, see `Queue.outcomes`.

        Raises:
            InvalidOption: an id is not valid.
        """
        return at_once(self._queue.outcomes(*job_ids))

    def export(self, state: JobState | str, *, after: str = "") -> Iterator[ExportedJob]:
        """Yield the jobs that have ended in ``state``, the first to end first, see `Queue.export`.

        Args:
            state: ``completed``, ``failed`` or ``cancelled``.
            after: the ``cursor`` of a job of this queue and state, "" for all.

        Raises:
            InvalidOption: it is none of those states, or the cursor is not one of such a job.
        """
        return each(self._queue.export(state, after=after))

    def redrive(
        self, *job_ids: str, task: NamedTask | str | None = None, all_jobs: bool = False
    ) -> int:
        """Queue dead letters again, see `Queue.redrive`; return how many were.

        Raises:
            InvalidOption: none or several of them are said, or an id is not valid.
        """
        return at_once(self._queue.redrive(*job_ids, task=task, all_jobs=all_jobs))

    def cancel(
        self,
        *job_ids: str,
        task: NamedTask | str | None = None,
        all_jobs: bool = False,
        states: Iterable[JobState | str] | None = None,
        older_than: Duration | None = None,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> CancelReport:
        """Cancel many jobs, see `Queue.cancel`.

        Args:
            *job_ids: of any number of jobs.
            task: those of this task, itself or its name.
            all_jobs: all of the queue.
            states: only those in one of these; default: all in which a job has not ended.
            older_than: only those that were enqueued longer ago.
            limit: at most so many.
            dry_run: change nothing, and return how many there are.

        Raises:
            InvalidOption: which are meant is not said, or a value is out of bounds.
        """
        return at_once(
            self._queue.cancel(
                *job_ids,
                task=task,
                all_jobs=all_jobs,
                states=states,
                older_than=older_than,
                limit=limit,
                dry_run=dry_run,
            )
        )

    def purge(
        self,
        state: JobState | str,
        *job_ids: str,
        task: NamedTask | str | None = None,
        all_jobs: bool = False,
    ) -> int:
        """Delete jobs in ``state``, not active ones, see `Queue.purge`; return how many were.

        Raises:
            InvalidOption: as for `redrive`, or ``state`` is ``active``.
        """
        return at_once(self._queue.purge(state, *job_ids, task=task, all_jobs=all_jobs))


def each(steps: AsyncIterator[T]) -> Iterator[T]:
    """Yield what an async iterator yields that blocks where it would wait."""

    async def following() -> T:
        return await anext(steps)

    while True:
        try:
            found = at_once(following())
        except StopAsyncIteration:
            return
        yield found

"""One queue as its operators see it: counts, workers, pause, and how it is set."""

from __future__ import annotations

from typing import Any

from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption
from headrace.fail_jobs import fail_task_name
from headrace.named_task import NamedTask
from headrace.one_process import QUEUE, OfOneProcess
from headrace.queue_jobs import QueueJobs
from headrace.settings import check_count
from headrace.views.queues import QueueStats, QueueWorker


class Queue(OfOneProcess, QueueJobs, instead=QUEUE):
    """A queue by name; made by `App.queue`. Its methods may raise `StorageError`.

    Args:
        name: its name.
        storage: returns what it is looked at and steered through.
        decode: reads arguments and results as plain data.
        clock: the time where the storage is, as far as it can be told without asking it.

    Raises:
        InvalidOption: the name is not valid.
    """

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"

    async def stats(self) -> QueueStats:
        """Return counts now, the work of the last minute, and what the queue keeps."""
        return QueueStats.of(await self._storage().stats(self.name))

    async def workers(self) -> list[QueueWorker]:
        """Return the workers that serve this queue."""
        return [
            QueueWorker.of(self.name, info) for info in await self._storage().workers(self.name)
        ]

    async def configure(
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
        """Change how the queue is set; None leaves a setting as it is. Returns its `stats` then.

        Args:
            history: completed and cancelled records, default 100,000, 1 to 10,000,000.
            dead_letters: default 10,000, same bounds.
            dead_letter_ttl: how long a dead letter is kept, default 30 days, at least a second.
            events: entries of the event stream (1 to 20 events each), default 5,000, same bounds.
            events_cap: entries of it while a reader has not acknowledged them, default 50,000, same
                bounds.
            on_failed: a task, or its name, of which a job comes with each dead letter whose own job
                names none, default none; "": none any more. The queue's workers must know it.
            max_active: jobs that are active at once, of all its workers together, default 0: no
                bound; at most 10,000,000. What is active beyond a lowered one goes on.
            max_length: jobs that wait at once, whatever for, default 0: no bound; at most
                10,000,000. A call that would bring more in raises `QueueFull`; retries, fail jobs
                and what comes back from a worker are let in.
            weight: the queue's share of the slots of workers that serve other queues too, 1 to
                1,000, over what they were started with; they follow with their next claims of it.
                Default 0: as each was started.
            aging: of so many jobs that start one is of a lower priority than the best that waits,
                of that whose next job has waited longest: 2 to 1,000,000. Default 0: who has a
                lower priority waits as long as any other does.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        counts = {
            "history": history,
            "dead_letters": dead_letters,
            "events": events,
            "events_cap": events_cap,
        }
        changes: dict[str, Any] = {}
        for name, value in counts.items():
            if value is not None:
                changes[name] = check_count(value, name=name, most=10_000_000)
        bounds = (
            ("max_active", max_active, 10_000_000),
            ("max_length", max_length, 10_000_000),
            ("weight", weight, 1_000),
            ("aging", aging, 1_000_000),
        )
        for name, value, most in bounds:
            if value is not None:
                changes[name] = check_count(value, name=name, most=most, least=0)
        if changes.get("aging") == 1:
            raise InvalidOption(
                "aging=1 leaves the best priority nothing: use 2 to 1,000,000, or 0"
            )
        if dead_letter_ttl is not None:
            changes["dead_letter_ttl_ms"] = duration_ms(
                dead_letter_ttl, name="dead_letter_ttl", least_ms=1000
            )
        if on_failed is not None:
            changes["on_failed"] = "" if on_failed == "" else fail_task_name(on_failed)
        if changes:
            await self._storage().configure(self.name, **changes)
        return await self.stats()

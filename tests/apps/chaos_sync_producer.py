"""A producer of the chaos soak without an event loop: it enqueues by a `SyncApp`.

Run as `tests.apps.chaos_producer` is. It sends one call after the other, and looks at the results
of requests while it waits for them.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from headrace import JobCancelled, JobError, JobFailed, StorageFull, SyncApp, SyncJobHandle
from tests.apps.chaos_app import app, notes
from tests.apps.chaos_jobs import (
    Assignment,
    is_drained,
    is_first,
    job_of,
    labels_of,
    note_error,
    note_odd,
    note_sent_all,
    note_stored,
)
from tests.apps.chaos_writes import AGAIN_S, SIZES, Writer, run_blocking
from tests.chaos.plan import REPEATABLE, TO_BE_CANCELLED, answer, kind_of, plan_of, queue_of

LOOK_S = 0.05


class SyncLoad:
    """The labels of one producer, and how it sends them.

    Args:
        assignment: what to do.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._app = SyncApp(app)
        self._random = random.Random(assignment.seed)
        self._writer = Writer()
        self._sent = 0

    def send_all(self) -> None:
        """Send everything, as evenly as outages allow."""
        began = time.monotonic()
        pace = self._assignment.seconds / max(1, self._assignment.jobs)
        labels = labels_of(self._assignment, self._random)
        ways: list[tuple[Callable[[list[str]], None], int]] = [
            (self.in_bulk, self._random.randrange(50, 400)),
            (self.one_by_one, 10),
            (self.and_wait, 2),
            (self.as_write, min(self._random.choice(SIZES), self._assignment.jobs // 4 + 1)),
        ]
        if is_first():
            self.as_write(list(islice(labels, SIZES[0])))
        while True:
            way, size = self._random.choices(ways, (3, 4, 2, 2))[0]
            group = list(islice(labels, size))
            if not group:
                break
            way(group)
            self.write_again()
            self._sent += len(group)
            time.sleep(max(0.0, began + self._sent * pace - time.monotonic()))
        while self._writer.is_open:
            self.write_again()
            time.sleep(AGAIN_S)

    # Ways

    def in_bulk(self, labels: list[str]) -> None:
        """By `SyncApp.enqueue_many`, half of them with ids of their own."""
        for queue in {queue_of(label) for label in labels}:
            group = [label for label in labels if queue_of(label) == queue]
            jobs = [job_of(label, has_id=n % 2 == 0) for n, label in enumerate(group)]
            notes.sent("want", *((job.id, label) for job, label in zip(jobs, group, strict=True)))
            try:
                handles = self._app.enqueue_many(jobs)
            except Exception as error:
                note_error(error, [job.id for job in jobs])
            else:
                note_stored(handles)
                for handle, label in zip(handles, group, strict=True):
                    self._follow(handle, label)

    def one_by_one(self, labels: list[str]) -> None:
        """Each after the other."""
        for label in labels:
            job = job_of(label, has_id=True)
            notes.sent("want", (job.id, label))
            try:
                handle = self._app.submit(job)
            except Exception as error:
                note_error(error, [job.id])
            else:
                note_stored([handle])
                self._follow(handle, label)

    def and_wait(self, labels: list[str]) -> None:
        """As requests whose answers are waited for."""
        for label in labels:
            if kind_of(label) in REPEATABLE:
                self._request(label)
            else:
                self.one_by_one([label])

    def as_write(self, labels: list[str]) -> None:
        """By a bulk write for each queue, but for what is to be cancelled: it has no handles."""
        self.one_by_one([label for label in labels if kind_of(label) in TO_BE_CANCELLED])
        rest = [label for label in labels if kind_of(label) not in TO_BE_CANCELLED]
        for attempt in self._writer.begin(rest):
            run_blocking(self._app, attempt)

    def write_again(self) -> None:
        """Run each write again that has not come to its end."""
        for attempt in self._writer.again():
            run_blocking(self._app, attempt)

    def _follow(self, handle: SyncJobHandle[Any], label: str) -> None:
        """Cancel a job that is to be cancelled."""
        if kind_of(label) in TO_BE_CANCELLED:
            notes.sent("cancel", (handle.id, "-"))
            try:
                outcome = handle.cancel()
            except Exception as error:
                note_odd(error, handle.id)
            else:
                notes.sent("cancelled", (handle.id, outcome.value))

    def _request(self, label: str) -> None:
        """Note how a request ends, which tells also that it was stored."""
        notes.sent("want", (label, label))
        notes.sent("waits", (label, label))
        task = self._app.bind(app.tasks[plan_of(label).task])
        call = task.options(id=label, queue=queue_of(label), **plan_of(label).options)
        try:
            word = "right" if call.enqueue_and_wait(label) == answer(label) else "wrong"
        except JobFailed as failure:
            word = failure.reason
        except JobCancelled:
            word = "cancelled"
        except JobError as error:
            word = type(error).__name__
        except Exception as error:
            # All but this may come of the wait.
            note_error(error, [label], no=(StorageFull,))
            notes.sent("got", (label, "error"))
            return
        notes.sent("ok", (label, "waited"))
        notes.sent("got", (label, word))


def produce(assignment: Assignment) -> None:
    """Send all, and wait for the end."""
    SyncLoad(assignment).send_all()
    note_sent_all()
    while not is_drained():
        time.sleep(LOOK_S)


if __name__ == "__main__":
    produce(msgspec.json.decode(sys.argv[1], type=Assignment))

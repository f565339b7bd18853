"""Events of queues, made and trimmed by the verbs of a storage."""

from __future__ import annotations

from headrace import SyncApp
from headrace.spark.storages import storage_of
from headrace.storage.blocking import BlockingStorage
from headrace.storage.event_pages import EventLines, EventPlace
from headrace.storage.limits import EVENT_LINES_LIMIT
from headrace.storage.steps import at_once
from headrace.testing.contract.delete_queue import next_millisecond


def storage_at(url: str) -> BlockingStorage:
    """Return this process's storage at an address."""
    return storage_of(url, "default")


def enqueue(app: SyncApp[None], count: int, *, queue: str = "q") -> None:
    """Make an event each of so many jobs, 500 a call."""
    task = app.task_ref("shop.send", queue=queue)
    app.enqueue_many(task.job(number=number) for number in range(count))


def trim(app: SyncApp[None], *, queue: str = "q") -> EventPlace:
    """Make 3,000 more events, and keep few; return the first entry that is kept."""
    app.queue(queue).configure(events=1)
    enqueue(app, 3_000, queue=queue)
    first = first_of(app, queue=queue)
    assert first.first > 1
    return first


def first_of(app: SyncApp[None], *, queue: str = "q") -> EventPlace:
    """Return the first entry that is kept."""
    return entries(app, queue=queue)[0].place


def last_of(app: SyncApp[None], *, queue: str = "q") -> EventPlace:
    """Return the last entry."""
    return entries(app, queue=queue)[-1].place


def entries(app: SyncApp[None], *, queue: str = "q") -> list[EventLines]:
    """Return all entries, at most a page."""
    found = at_once(storage_at(app.app.url).event_lines(queue, limit=EVENT_LINES_LIMIT))
    assert len(found) < EVENT_LINES_LIMIT
    return found


def delete(app: SyncApp[None], *, queue: str = "q") -> None:
    """Delete a queue, whose jobs all wait, with all that is in it."""
    app.queue(queue).purge("queued", all_jobs=True)
    next_millisecond()  # nothing of its last one is told of a new queue
    assert at_once(storage_at(app.app.url).delete_queue(queue)) == 0

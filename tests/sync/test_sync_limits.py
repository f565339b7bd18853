"""Limits from a program without an event loop: who is held up, and how that is steered."""

from __future__ import annotations

import threading

import pytest

from headrace import EnqueueOutcome, InvalidArguments, JobState, Limit, QueueFull, SyncApp, SyncTask
from tests.support.threads import blocked_until, working
from tests.support.until import patience

LIMIT = "charge:customer"


class Till:
    """Notes how many handlers of a customer run at once."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self.order: list[int] = []
        self._now: dict[str, int] = {}
        self._lock = threading.Lock()

    def enter(self, customer: str, number: int) -> None:
        with self._lock:
            self.order.append(number)
            self._now[customer] = self._now.get(customer, 0) + 1
            self.most[customer] = max(self.most.get(customer, 0), self._now[customer])

    def leave(self, customer: str) -> None:
        with self._lock:
            self._now[customer] -= 1


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def charge(app: SyncApp[None], till: Till) -> SyncTask[[str, int], int]:
    @app.task(name="charge", queue="pay", limits=[Limit(by="customer", concurrency=1)])
    def charge(customer: str, number: int) -> int:
        till.enter(customer, number)
        till.leave(customer)
        return number

    return charge


def test_jobs_of_a_key_run_one_at_a_time_and_in_their_order(
    app: SyncApp[None], charge: SyncTask[[str, int], int], till: Till
) -> None:
    handles = [charge.enqueue("a", n) for n in range(5)]
    assert [handle.outcome for handle in handles] == [
        EnqueueOutcome.QUEUED,
        *[EnqueueOutcome.BLOCKED] * 4,
    ]
    assert charge.enqueue("b", 9).outcome == EnqueueOutcome.QUEUED
    status = handles[1].status()
    assert (status.state, status.limits, status.blocked_by) == (
        JobState.BLOCKED,
        {LIMIT: "a"},
        LIMIT,
    )
    with working(app):
        assert [handle.result(patience(20)) for handle in handles] == list(range(5))
    assert till.most["a"] == 1
    assert [n for n in till.order if n != 9] == list(range(5))


def test_a_queue_shows_its_limits_and_has_them_set(
    app: SyncApp[None], charge: SyncTask[[str, int], int]
) -> None:
    queue = app.queue("pay")
    for n in range(3):
        charge.enqueue("a", n)
    gate = queue.gate(LIMIT, "a")
    assert (gate.ready, gate.active, gate.blocked) == (1, 0, 2)
    queue.set_limit(LIMIT, concurrency=2)
    gate = queue.gate(LIMIT, "a")
    assert (gate.ready, gate.blocked) == (2, 1)
    assert [(limit.name, limit.concurrency, limit.is_set) for limit in queue.limits()] == [
        (LIMIT, 2, True)
    ]
    queue.reset_limit(LIMIT)
    assert [(limit.concurrency, limit.is_set) for limit in queue.limits()] == [(1, False)]
    with working(app):
        blocked_until(lambda: queue.stats().history == 3)
    gate = queue.gate(LIMIT, "a")
    assert (gate.ready, gate.active, gate.blocked) == (0, 0, 0)


def test_a_bulk_write_and_many_at_once_meet_limits_too(
    app: SyncApp[None], charge: SyncTask[[str, int], int]
) -> None:
    app.enqueue_many(charge.job("a", n) for n in range(3))
    with app.bulk("w", queue="pay") as bulk:
        bulk.add_many(charge.job("a", n) for n in range(3))
    gate = app.queue("pay").gate(LIMIT, "a")
    assert (gate.ready, gate.active, gate.blocked) == (1, 0, 5)


def test_what_is_no_key_or_has_no_room_is_refused(
    app: SyncApp[None], charge: SyncTask[[str, int], int]
) -> None:
    with pytest.raises(InvalidArguments, match=r"charge: customer=1\.5"):
        charge.enqueue(1.5, 1)  # type: ignore[arg-type]  # the point
    app.queue("pay").configure(max_length=1)
    charge.enqueue("a", 1)
    with pytest.raises(QueueFull, match="'pay' takes 1 jobs that wait, and 1 do"):
        charge.enqueue("a", 2)

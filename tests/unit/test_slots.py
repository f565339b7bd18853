"""How a worker's slots are shared between its queues."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.worker.slots import Slots


def shares(slots: Slots, queues: list[str], rounds: int) -> Counter[str]:
    """Let every attempt end at once, with jobs left in all queues, and count who got slots."""
    counts: Counter[str] = Counter()
    while counts.total() < rounds:
        for queue in queues:
            got = slots.take(queue)
            counts[queue] += got
            slots.give_back(queue, 0, is_hungry=True)
            for _ in range(got):
                slots.release()
    return counts


def test_one_queue_may_have_all_slots() -> None:
    slots = Slots(10, {"a": 1})
    assert slots.take("a") == 10
    assert slots.take("a") == 0


def test_a_queue_without_jobs_takes_nothing_from_the_others() -> None:
    slots = Slots(10, {"a": 1, "b": 1000})
    slots.give_back("b", slots.take("b"), is_hungry=False)
    assert slots.take("a") == 10


@pytest.mark.parametrize(
    "weights",
    [
        {"a": 10, "b": 3, "c": 1},
        {"a": 1, "b": 1000},
        dict.fromkeys("abcdefg", 1),
    ],
)
def test_hungry_queues_share_by_weight(weights: dict[str, int]) -> None:
    # BC-89: equal weights are equal shares, a low weight is never starved.
    counts = shares(Slots(7, weights), list(weights), 14_000)
    for queue, weight in weights.items():
        share = weight / sum(weights.values())
        assert counts[queue] / counts.total() == pytest.approx(share, rel=0.05, abs=0.002)


def test_a_waiting_queue_is_nudged_when_it_is_granted_a_slot() -> None:
    slots = Slots(1, {"a": 1, "b": 1})
    nudged: list[str] = []
    slots.on_grant("a", lambda: nudged.append("a"))
    slots.on_grant("b", lambda: nudged.append("b"))
    assert slots.take("a") == 1
    assert slots.take("b") == 0
    assert nudged == []
    slots.release()
    assert nudged == ["b"]
    assert slots.take("b") == 1


def test_a_grant_that_finds_no_job_goes_to_the_next() -> None:
    slots = Slots(1, {"a": 1, "b": 1})
    slots.give_back("a", slots.take("a") - 1, is_hungry=True)
    slots.take("b")
    slots.release()
    slots.release()
    # Whoever is granted the slot and has no job left gives it back.
    for queue in ("a", "b"):
        slots.give_back(queue, slots.take(queue), is_hungry=False)
    assert slots.take("a") >= 1


def test_slots_are_neither_lost_nor_made() -> None:
    slots = Slots(5, {"a": 2, "b": 1})
    for _ in range(200):
        for queue, is_hungry in (("a", True), ("b", False), ("b", True), ("a", False)):
            got = slots.take(queue)
            slots.give_back(queue, got // 2, is_hungry=is_hungry)
            for _ in range(got - got // 2):
                slots.release()
    for queue in ("a", "b"):
        slots.give_back(queue, slots.take(queue), is_hungry=False)
    assert slots.free == 5

"""How a worker's slots are shared between its queues."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.job import DEFAULT_LANE, PROCESS_LANE
from headrace.storage.limits import BATCH_LIMIT
from headrace.worker.slots import ROUND, Slot, Slots

QUEUES = "abcdefgh"


def shares(
    slots: Slots, queues: list[str], rounds: int, *, filled: dict[str, int] | None = None
) -> Counter[str]:
    """Let every attempt end at once, with jobs left in all queues, and count who got slots.

    A queue in ``filled`` has no more jobs for one claim than that.
    """
    counts: Counter[str] = Counter()
    while counts.total() < rounds:
        for queue in queues:
            taken = slots.take(queue)
            got = min(taken, (filled or {}).get(queue, taken))
            counts[queue] += got
            slots.give_back(queue, taken - got, is_hungry=True)
            for _ in range(got):
                slots.release()
    return counts


def full_of_slow_attempts(total: int, queues: str) -> Slots:
    """All slots busy, and all queues hungry."""
    slots = Slots(total, dict.fromkeys(queues, 1))
    while slots.take(queues[0]):
        slots.give_back(queues[0], 0, is_hungry=True)
    for queue in queues:
        assert slots.take(queue) == 0
    return slots


def release(slots: Slots, count: int) -> None:
    for _ in range(count):
        slots.release()


def test_one_queue_may_have_all_slots_half_of_them_a_claim() -> None:
    slots = Slots(10, {"a": 1})
    assert [slots.take("a") for _ in range(3)] == [5, 5, 0]


def test_a_claim_is_for_no_more_than_one_call_may_bring() -> None:
    slots = Slots(10_000, {"a": 1, "b": 1})
    assert slots.take("a") == BATCH_LIMIT
    slots.give_back("a", 0, is_hungry=True)
    assert slots.take("b") == 0
    assert slots.take("a") == BATCH_LIMIT


def test_a_queue_without_jobs_takes_nothing_from_the_others() -> None:
    slots = Slots(10, {"a": 1, "b": 1000})
    slots.give_back("b", slots.take("b"), is_hungry=False)
    assert [slots.take("a") for _ in range(2)] == [5, 5]


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


def test_slots_that_come_free_at_once_go_to_few_queues() -> None:
    slots = full_of_slow_attempts(100, QUEUES)
    release(slots, 50)
    assert sorted(slots.take(queue) for queue in QUEUES) == [0, 0, 0, 0, 0, 0, 25, 25]


def test_what_comes_free_while_a_queue_claims_waits_for_it_up_to_its_portion() -> None:
    slots = full_of_slow_attempts(100, QUEUES)
    release(slots, 1)
    first = next(queue for queue in QUEUES if slots.take(queue))
    release(slots, 99)
    slots.give_back(first, 0, is_hungry=True)
    assert max(slots.take(queue) for queue in QUEUES) == 25


def test_no_queue_is_granted_more_than_a_claim_is_for_while_another_is_hungry() -> None:
    slots = full_of_slow_attempts(100, "ab")
    release(slots, 100)
    assert [slots.take(queue) for queue in "ab"] == [50, 50]


def test_slots_that_come_free_one_by_one_go_to_one_queue_after_another() -> None:
    slots = full_of_slow_attempts(100, QUEUES)
    for _ in range(5):
        served = []
        for _ in QUEUES:
            slots.release()
            served += [queue for queue in QUEUES if slots.take(queue)]
        assert sorted(served) == list(QUEUES)


@pytest.mark.parametrize("weights", [dict.fromkeys(QUEUES, 1), {"a": 100, "b": 3, "c": 1}])
def test_every_hungry_queue_has_its_turn_within_a_round(weights: dict[str, int]) -> None:
    slots = Slots(100, weights)
    slots.take("a")
    slots.take("a")
    for queue in weights:
        slots.give_back(queue, 0, is_hungry=True)
    for _ in range(5):
        got: Counter[str] = Counter()
        for _ in range(ROUND):
            release(slots, 100)
            for queue in weights:
                while count := slots.take(queue):
                    got[queue] += count
        assert all(got[queue] for queue in weights), got


def test_a_queue_that_gets_hungry_is_the_next() -> None:
    # With seven turns before it, its first job would wait for two turnovers of all slots.
    slots = full_of_slow_attempts(100, QUEUES)
    slots.give_back("b", 0, is_hungry=False)
    assert slots.take("b") == 0
    slots.release()
    assert slots.take("b") == 1


def test_a_queue_that_had_all_slots_while_it_was_alone_does_not_pay_for_them() -> None:
    slots = full_of_slow_attempts(100, "ab")
    counts: Counter[str] = Counter()
    for _ in range(20):
        slots.release()
        for queue in "ab":
            counts[queue] += slots.take(queue)
    assert counts == {"a": 10, "b": 10}


def test_a_queue_saves_nothing_up_while_it_has_no_jobs() -> None:
    slots = Slots(7, {"a": 1, "b": 1, "c": 1})
    shares(slots, ["a", "b"], 10_000)
    counts = shares(slots, ["a", "b", "c"], 300)
    assert counts["c"] == pytest.approx(100, abs=10)


def test_a_queue_pays_only_for_what_it_fills() -> None:
    counts = shares(Slots(40, {"a": 1, "b": 1}), ["a", "b"], 10_000, filled={"b": 7})
    assert counts["b"] / counts.total() == pytest.approx(0.5, rel=0.05)


def test_what_a_queue_took_while_it_was_alone_and_did_not_fill_earns_it_nothing() -> None:
    slots = Slots(100, {"a": 1, "b": 1, "c": 1})
    taken = slots.take("a")
    slots.take("b")
    assert slots.take("c") == 0
    for _ in range(2):
        slots.give_back("a", taken - 1, is_hungry=True)
        taken = slots.take("a")
    assert slots.take("c") > 0


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


def test_what_was_granted_to_a_queue_without_jobs_goes_to_the_next() -> None:
    slots = full_of_slow_attempts(100, "ab")
    nudged: list[str] = []
    slots.on_grant("a", lambda: nudged.append("a"))
    slots.on_grant("b", lambda: nudged.append("b"))
    release(slots, 10)
    first = nudged[0]
    assert nudged == [first] * 10
    slots.give_back(first, 0, is_hungry=False)
    assert nudged[-1] != first
    assert slots.take(nudged[-1]) == 10


def begun(weights: dict[str, int], total: int = 1, *, random: Random) -> Slots:
    slots = Slots(total, weights)
    slots.begin(random.random)
    return slots


def test_at_the_start_the_queue_that_comes_first_does_not_take_all() -> None:
    draws = {"a": 0.9, "b": 0.1, "c": 0.5}
    slots = Slots(1, dict.fromkeys(draws, 1))
    slots.begin(iter(draws.values()).__next__)
    assert [slots.take(queue) for queue in "acb"] == [0, 0, 1]
    slots.give_back("b", 0, is_hungry=True)
    slots.release()
    assert [slots.take(queue) for queue in "abc"] == [0, 0, 1]


def test_what_is_granted_at_the_start_to_a_queue_without_jobs_goes_to_the_next() -> None:
    draws = {"a": 0.9, "b": 0.1, "c": 0.5}
    slots = Slots(1, dict.fromkeys(draws, 1))
    slots.begin(iter(draws.values()).__next__)
    slots.give_back("b", slots.take("b"), is_hungry=False)
    assert [slots.take(queue) for queue in "abc"] == [0, 0, 1]


def test_workers_of_two_jobs_each_serve_all_queues_by_weight() -> None:
    weights = {"a": 10, "b": 1, "c": 1, "d": 1, "e": 1}
    random = Random(5)
    counts: Counter[str] = Counter()
    for _ in range(2_000):
        counts += shares(begun(weights, random=random), list(weights), 2)
    share = {queue: counts[queue] / counts.total() for queue in weights}
    assert share["a"] == pytest.approx(10 / 14, rel=0.1)
    assert all(share[queue] == pytest.approx(1 / 14, rel=0.3) for queue in "bcde")


@pytest.mark.parametrize("weights", [dict.fromkeys(QUEUES, 1), {"a": 100, "b": 3, "c": 1}])
def test_wherever_a_worker_begins_every_queue_has_its_turn_within_a_round(
    weights: dict[str, int],
) -> None:
    random = Random(7)
    for _ in range(50):
        slots = begun(weights, 100, random=random)
        got = shares(slots, list(weights), (ROUND + 1) * 100)
        assert all(got[queue] for queue in weights), got


@given(
    total=st.integers(1, 30),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["take", "answer", "release"]),
            st.sampled_from("abc"),
            st.integers(0, 30),
            st.booleans(),
        ),
        max_size=60,
    ),
)
def test_slots_are_neither_lost_nor_made_nor_kept_from_the_hungry(
    total: int, steps: list[tuple[str, str, int, bool]]
) -> None:
    slots = Slots(total, {"a": 5, "b": 2, "c": 1})
    claiming: dict[str, int] = {}
    hungry: set[str] = set()
    running = 0
    for step, queue, count, is_hungry in steps:
        if step == "release":
            count = min(count, running)
            running -= count
            release(slots, count)
        elif step == "answer" and queue in claiming:
            got = min(count, claiming[queue])
            running += got
            slots.give_back(queue, claiming.pop(queue) - got, is_hungry=is_hungry)
            (hungry.add if is_hungry else hungry.discard)(queue)
        elif step == "take" and queue not in claiming:
            if taken := slots.take(queue):
                claiming[queue] = taken
            else:
                hungry.add(queue)
        assert not (hungry and slots.free)
        assert slots.free + running + sum(claiming.values()) <= total
    release(slots, running)
    for queue in "abcabc":
        slots.give_back(queue, claiming.pop(queue, 0), is_hungry=False)
    assert slots.free == total


def test_the_slot_of_an_attempt_comes_free_once() -> None:
    slots = Slots(2, {"a": 1})
    assert slots.take("a") == 1
    slot = Slot(DEFAULT_LANE, slots.release)
    slot.release()
    slot.release()
    assert slots.free == 2


def test_a_process_slot_that_was_passed_on_to_its_child_is_freed_by_that() -> None:
    slots = Slots(1, {"a": 1})
    assert slots.take("a") == 1
    slot = Slot(PROCESS_LANE, slots.release)
    assert [slot.pass_on(), slot.pass_on()] == [True, False]
    slot.release()
    assert slots.free == 0
    assert not Slot(DEFAULT_LANE, slots.release).pass_on()


def test_a_queue_that_needs_several_slots_takes_so_many_or_none_and_is_told_once() -> None:
    nudges: list[str] = []
    slots = Slots(6, {"a": 1})
    slots.on_grant("a", lambda: nudges.append("a"))
    assert [slots.take("a"), slots.take("a")] == [3, 3]
    slots.give_back("a", 2, is_hungry=True, needs=5)
    for _ in range(2):
        assert slots.take("a") == 0
        slots.release()
    assert nudges == []
    slots.release()
    assert nudges == ["a"]
    assert slots.take("a") == 5
    assert slots.free == 0


def test_two_queues_that_need_several_take_turns_and_never_wait_for_each_other() -> None:
    slots = Slots(10, {"a": 1, "b": 1})
    held = {"a": slots.take("a"), "b": 0}
    slots.give_back("a", 0, is_hungry=True)
    counts = {"a": 0, "b": 0}
    need = {"a": 8, "b": 7}
    for queue in "ab":
        slots.give_back(queue, slots.take(queue), is_hungry=True, needs=need[queue])
    for _ in range(20):
        for queue in "ab":
            release(slots, held[queue])
            held[queue] = 0
        taken = {queue: slots.take(queue) for queue in "ab"}
        for queue, count in taken.items():
            if count:
                assert count >= need[queue]
                counts[queue] += 1
                held[queue] = need[queue]
                slots.give_back(queue, count - need[queue], is_hungry=True, needs=need[queue])
    assert min(counts.values()) >= 8


def test_light_jobs_of_another_queue_do_not_starve_one_that_needs_several() -> None:
    slots = Slots(4, {"heavy": 1, "light": 1000})
    running = slots.take("light") + slots.take("light")
    slots.give_back("light", 0, is_hungry=True)
    slots.take("heavy")
    slots.give_back("heavy", 0, is_hungry=True, needs=4)
    rounds = 0
    while not (taken := slots.take("heavy")):
        slots.release()
        running += slots.take("light") - 1
        slots.give_back("light", 0, is_hungry=True)
        rounds += 1
        assert rounds < 5_000
    assert (taken, running) == (4, 0)


def test_what_is_free_may_be_taken_early_and_the_turn_goes_on() -> None:
    slots = Slots(4, {"a": 1, "b": 1})
    assert [slots.take("a"), slots.take("a")] == [2, 2]
    slots.give_back("a", 0, is_hungry=True, needs=3)
    assert slots.take("b") == 0
    release(slots, 1)
    assert slots.take_early("a") + slots.take_early("b") in (0, 1)  # whose turn it is
    while not (early := slots.take_early("a")):
        slots.give_back("b", slots.take("b"), is_hungry=True)
        release(slots, 1)
    slots.give_back("a", early, is_hungry=True, needs=3)
    release(slots, 3)
    assert slots.take("a") == 3


def test_an_attempt_of_several_slots_lets_all_come_free_once() -> None:
    freed: list[int] = []
    slot = Slot(DEFAULT_LANE, lambda: freed.append(1), count=3)
    assert not slot.pass_on()
    slot.release()
    slot.release()
    assert len(freed) == 3


def test_of_several_process_slots_one_is_left_to_the_child() -> None:
    freed: list[int] = []
    slot = Slot(PROCESS_LANE, lambda: freed.append(1), count=3)
    assert [slot.pass_on(), slot.pass_on()] == [True, False]
    slot.release()
    assert len(freed) == 2


def test_a_weight_that_is_set_holds_until_it_is_taken_back() -> None:
    slots = Slots(10, {"a": 1, "b": 1})
    slots.weigh("a", 9)
    given = shares(slots, ["a", "b"], 2_000)
    assert 8 < given["a"] / given["b"] < 10
    slots.weigh("a", 0)
    given = shares(slots, ["a", "b"], 2_000)
    assert 0.9 < given["a"] / given["b"] < 1.1

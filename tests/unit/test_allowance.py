"""How many jobs a queue may hold after fences."""

from __future__ import annotations

import pytest

from headrace.worker.allowance import Allowance

LEASE_S = 15.0


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def allowance(clock: Hand) -> Allowance:
    allowance = Allowance(100, lease_s=LEASE_S, monotonic=clock)
    allowance.begin()
    return allowance


def fenced(allowance: Allowance, held: int) -> int:
    """Fence one that held so many, and return how many the next one may hold."""
    allowance.halve(held)
    allowance.begin()
    return allowance.room(0)


def test_there_is_no_limit_before_a_fence(allowance: Allowance) -> None:
    assert not allowance.is_reduced
    assert allowance.room(0) == 100
    assert allowance.grows_in_s is None


def test_each_fence_halves_what_was_held(allowance: Allowance) -> None:
    assert [fenced(allowance, held) for held in (80, 40, 20, 10, 5, 2)] == [40, 20, 10, 5, 2, 1]


def test_what_was_held_counts_as_far_as_it_was_allowed(allowance: Allowance) -> None:
    # Outcomes that wait to be recorded count as held, and what was asked for on top of them.
    assert [fenced(allowance, 150) for _ in range(3)] == [50, 25, 12]


@pytest.mark.parametrize("held", [0, 1])
def test_a_fence_that_no_number_of_jobs_explains_changes_nothing(
    allowance: Allowance, held: int
) -> None:
    assert fenced(allowance, held) == 100
    assert fenced(allowance, 20) == 10
    assert fenced(allowance, held) == 10


def test_it_doubles_with_each_lease_until_there_is_no_limit(
    allowance: Allowance, clock: Hand
) -> None:
    assert fenced(allowance, 60) == 30
    clock.now += LEASE_S - 1
    assert (allowance.room(0), allowance.room(20), allowance.room(31)) == (30, 10, 0)
    assert allowance.grows_in_s == 1
    clock.now += 1
    assert allowance.room(0) == 60
    clock.now += LEASE_S
    assert allowance.room(0) == 100
    assert not allowance.is_reduced


def test_a_lease_counts_from_the_start_of_an_incarnation(allowance: Allowance, clock: Hand) -> None:
    allowance.halve(60)
    clock.now += 10 * LEASE_S  # the storage was away
    allowance.begin()
    assert allowance.room(0) == 30

"""How long a failed job waits, and the bounds of that."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from headrace import InvalidOption, Retry
from headrace.backoff import LONGEST_S, Backoff


def test_the_longest_wait_grows_by_the_factor_up_to_its_maximum() -> None:
    retry = Retry(min=1, max=10, factor=2)
    assert [retry.delay(n, lambda: 1.0) for n in (1, 2, 3, 4, 50, 10**9)] == [2, 4, 8, 10, 10, 10]


def test_the_shortest_wait_is_the_minimum() -> None:
    retry = Retry(min=1, max=10)
    assert [retry.delay(n, lambda: 0.0) for n in (1, 2, 1000)] == [1, 1, 1]


def test_the_wait_is_spread_over_the_whole_range() -> None:
    draw = random.Random(7).random
    waits = [Retry(min=1, max=300).delay(5, draw) for _ in range(2_000)]
    assert min(waits) < 2
    assert max(waits) > 31
    assert 15 < sum(waits) / len(waits) < 18


def test_a_huge_factor_does_not_overflow() -> None:
    assert Retry(min=1, max=5, factor=100).delay(900, lambda: 1.0) == 5


@pytest.mark.parametrize(
    "options",
    [
        {"min": 0},
        {"min": -1},
        {"min": math.nan},
        {"min": "1"},
        {"min": True},
        {"max": math.inf},
        {"max": 1e18},
        {"min": 10, "max": 5},
        {"factor": 0.5},
        {"factor": math.nan},
        {"factor": 101},
        {"factor": "2"},
        {"factor": True},
    ],
)
def test_a_bound_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=r"Retry\."):
        Retry(**options)


def test_pauses_grow_stay_bounded_and_begin_again() -> None:
    backoff = Backoff()
    first = [backoff.next_s() for _ in range(100)]
    assert all(0.01 <= pause <= LONGEST_S for pause in first)
    assert max(first) > 1
    backoff.reset()
    assert backoff.next_s() <= 0.05

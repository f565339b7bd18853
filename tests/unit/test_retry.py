"""Which errors are worth another attempt, how long a failed job waits, and the bounds of that."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from headrace import FailPermanently, InvalidOption, Retry, RetryLater
from headrace.backoff import LONGEST_S, Backoff
from headrace.options import task_settings
from headrace.retry import RetryRules, check_retry_on
from tests.apps.zoo import EXCEPTIONS


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


def test_without_rules_every_error_is_worth_another_attempt() -> None:
    assert not any(RetryRules().is_permanent(error) for error in [OSError(), KeyboardInterrupt()])


def test_with_retry_on_any_other_error_is_permanent() -> None:
    rules = RetryRules(retry_on=(OSError, KeyError))
    assert not rules.is_permanent(ConnectionResetError())
    assert not rules.is_permanent(KeyError("x"))
    assert rules.is_permanent(LookupError())
    assert rules.is_permanent(BaseExceptionGroup("several", [OSError()]))


def test_fail_on_is_permanent_whatever_retry_on_says() -> None:
    rules = RetryRules(retry_on=(OSError,), fail_on=(FileNotFoundError,))
    assert rules.is_permanent(FileNotFoundError())
    assert not rules.is_permanent(PermissionError())
    assert not RetryRules(fail_on=(KeyError,)).is_permanent(ValueError())


def test_neither_an_error_s_class_nor_a_kind_s_is_asked() -> None:
    class Meta(type):
        def __subclasscheck__(cls, _other: type) -> bool:
            raise SystemExit(7)

    class Sly(Exception, metaclass=Meta):
        pass

    rules = RetryRules(retry_on=check_retry_on((Sly, LookupError)))
    for make in EXCEPTIONS.values():
        error = make()
        assert rules.is_permanent(error) is (LookupError not in type.mro(type(error)))


@pytest.mark.parametrize("name", ["retry_on", "fail_on"])
@pytest.mark.parametrize(
    "several", [OSError, (OSError,), [OSError], {OSError}, frozenset([OSError])]
)
def test_one_class_or_several_may_be_said(name: str, several: Any) -> None:
    options: dict[str, Any] = {name: several}
    assert getattr(task_settings(**options).retry_rules, name) == (OSError,)


@pytest.mark.parametrize("name", ["retry_on", "fail_on"])
@pytest.mark.parametrize(
    "kinds",
    [
        "OSError",
        ("OSError",),
        OSError(),
        int,
        (OSError, int),
        (OSError, (KeyError,)),
        lambda error: True,
        {OSError: 1, "KeyError": 2},
        7,
        b"OSError",
        (kind for kind in [OSError]),
        RetryLater,
        (OSError, FailPermanently),
    ],
    ids=lambda kinds: type(kinds).__name__,
)
def test_what_is_no_class_of_errors_is_refused_at_the_declaration(name: str, kinds: Any) -> None:
    options: dict[str, Any] = {name: kinds}
    with pytest.raises(InvalidOption, match=f"{name} has "):
        task_settings(**options)


def test_an_empty_retry_on_is_refused_and_an_empty_fail_on_says_nothing() -> None:
    with pytest.raises(InvalidOption, match="say max_attempts=1"):
        task_settings(retry_on=())
    assert task_settings(fail_on=()).retry_rules == RetryRules()


def test_a_class_in_both_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"KeyError.* is in retry_on and in fail_on"):
        task_settings(retry_on=(OSError, KeyError), fail_on=KeyError)

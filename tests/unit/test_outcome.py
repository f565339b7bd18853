"""What a handler's error comes to, without running one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from headrace import FailPermanently, FailReason, Retry, RetryLater, Snooze
from headrace.description import describe
from headrace.outcome import SNOOZE_STARTS, Failed, Retried, Snoozed, decide
from headrace.retry import RetryFunction, RetryRules
from tests.apps.zoo import Seconds


def outcome_of(
    error: BaseException,
    *,
    start: int | None = None,
    errors_before: int = 0,
    max_attempts: int = 3,
    retry: Retry | RetryFunction | None = None,
    rules: RetryRules | None = None,
) -> Retried | Snoozed | Failed:
    return decide(
        error,
        start=errors_before + 1 if start is None else start,
        errors_before=errors_before,
        max_attempts=max_attempts,
        retry=retry or Retry(min=1, max=300),
        rules=rules or RetryRules(),
        draw=lambda: 1.0,
    )


def test_an_error_with_attempts_left_is_retried_after_the_policy_s_wait() -> None:
    outcome = outcome_of(ValueError("no"), errors_before=1)
    assert isinstance(outcome, Retried)
    assert outcome.delay_ms == 4000
    assert (outcome.error.type, outcome.error.message) == ("ValueError", "no")
    assert outcome.error.start == 2


def test_the_last_attempt_fails_as_exhausted() -> None:
    outcome = outcome_of(ValueError("no"), errors_before=2)
    assert isinstance(outcome, Failed)
    assert outcome.reason is FailReason.EXHAUSTED
    assert outcome.is_attempt


def test_a_permanent_failure_ignores_what_is_left() -> None:
    outcome = outcome_of(FailPermanently("bad address"))
    assert isinstance(outcome, Failed)
    assert outcome.reason is FailReason.PERMANENT
    assert outcome.error.message == "bad address"


@pytest.mark.parametrize(("delay", "ms"), [(0, 0), (1.5, 1500), (timedelta(minutes=1), 60_000)])
def test_retry_later_says_its_own_delay(delay: float | timedelta, ms: int) -> None:
    outcome = outcome_of(RetryLater(delay, "busy"))
    assert isinstance(outcome, Retried)
    assert outcome.delay_ms == ms
    assert outcome.error.message == "busy"


def test_retry_later_uses_up_an_attempt() -> None:
    outcome = outcome_of(RetryLater(1), errors_before=2)
    assert isinstance(outcome, Failed)
    assert outcome.reason is FailReason.EXHAUSTED


def test_an_error_that_the_rules_call_permanent_is_not_retried() -> None:
    def never(_errors: int, _error: BaseException) -> float:
        raise AssertionError("asked for a wait")

    outcome = outcome_of(ValueError("no"), retry=never, rules=RetryRules(retry_on=(OSError,)))
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.is_attempt) == (FailReason.PERMANENT, True)
    assert outcome.error.message == "no"


@pytest.mark.parametrize(
    "rules", [RetryRules(retry_on=(OSError,)), RetryRules(fail_on=(Exception,))]
)
def test_retry_later_asks_for_another_attempt_whatever_the_rules_say(rules: RetryRules) -> None:
    assert isinstance(outcome_of(RetryLater(1), rules=rules), Retried)
    exhausted = outcome_of(RetryLater(1), errors_before=2, rules=rules)
    assert isinstance(exhausted, Failed)
    assert exhausted.reason is FailReason.EXHAUSTED


@pytest.mark.parametrize("delay", [0, 1.5, timedelta(minutes=1)])
def test_a_snooze_is_no_failure_whatever_is_left_and_the_rules_say(
    delay: float | timedelta,
) -> None:
    rules = RetryRules(fail_on=(Exception,))
    outcome = outcome_of(Snooze(delay, "not\nyet"), errors_before=2, rules=rules)
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    assert outcome == Snoozed(round(seconds * 1000), "not yet")
    assert outcome_of(Snooze(0)) == Snoozed(0, "")


def test_a_long_reason_of_a_snooze_is_cut() -> None:
    assert outcome_of(Snooze(0, "\ud800" + "x" * 10_000)) == Snoozed(0, "?" + "x" * 199)


@pytest.mark.parametrize("start", [SNOOZE_STARTS, 7 * SNOOZE_STARTS])
def test_at_every_thousandth_start_a_snooze_makes_a_dead_letter(start: int) -> None:
    outcome = outcome_of(Snooze(60, "not yet"), start=start)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.is_attempt) == (FailReason.EXHAUSTED, False)
    assert outcome.error.type == "headrace.SnoozeLimit"
    assert f"at start {start:,} of its job" in outcome.error.message
    assert "Snooze: not yet" in outcome.error.traceback
    for other in (start - 1, start + 1):
        assert outcome_of(Snooze(60), start=other) == Snoozed(60_000)


@pytest.mark.parametrize("delay", [-1, float("nan"), "5", None, 1e18])
def test_a_bad_delay_of_a_snooze_fails_for_good_and_says_so(delay: Any) -> None:
    outcome = outcome_of(Snooze(delay))
    assert isinstance(outcome, Failed)
    assert outcome.reason is FailReason.PERMANENT
    assert "Snooze.delay=" in outcome.error.message


@pytest.mark.parametrize("delay", [-1, float("nan"), "5", None, 1e18])
def test_a_bad_delay_fails_for_good_and_says_so(delay: Any) -> None:
    outcome = outcome_of(RetryLater(delay))
    assert isinstance(outcome, Failed)
    assert outcome.reason is FailReason.PERMANENT
    assert "RetryLater.delay=" in outcome.error.message


def test_a_strategy_gets_the_errors_so_far_and_the_last_one() -> None:
    seen: list[tuple[int, BaseException]] = []

    def strategy(errors: int, error: BaseException) -> float:
        seen.append((errors, error))
        return 0.5

    error = ValueError("no")
    outcome = outcome_of(error, errors_before=1, retry=strategy)
    assert isinstance(outcome, Retried)
    assert outcome.delay_ms == 500
    assert seen == [(2, error)]


def test_a_retry_functions_number_counts_by_its_value_whatever_its_class_does() -> None:
    outcome = outcome_of(ValueError("no"), retry=lambda _errors, _error: Seconds(1))
    assert isinstance(outcome, Retried)
    assert (outcome.delay_ms, type(outcome.delay_ms)) == (1000, int)


@pytest.mark.parametrize("answer", [-1, float("inf"), "soon", None, True])
def test_a_strategy_with_a_bad_answer_fails_the_job_for_good(answer: Any) -> None:
    outcome = outcome_of(ValueError("no"), retry=lambda _errors, _error: answer)
    assert isinstance(outcome, Failed)
    assert outcome.reason is FailReason.PERMANENT
    assert "retry strategy returned a bad delay" in outcome.error.message
    assert "ValueError: no" in outcome.error.traceback, "the handler's own error must not be lost"


def test_a_strategy_that_raises_fails_the_job_for_good() -> None:
    def broken(errors: int, _error: BaseException) -> float:
        return 1 / (errors - 1)

    try:
        int("no")
    except ValueError as error:
        # As in the worker: the strategy runs while the handler's error is being handled.
        outcome: Retried | Snoozed | Failed | None = outcome_of(error, retry=broken)
    else:
        outcome = None
    assert isinstance(outcome, Failed)
    assert outcome.error.type == "ZeroDivisionError"
    assert "ValueError: invalid literal" in outcome.error.traceback


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def test_an_exception_that_can_not_be_shown_is_described_all_the_same() -> None:
    info = describe(Unspeakable(), 1)
    assert info.type.endswith("Unspeakable")
    assert info.message == "<its text can't be shown: RuntimeError>"


def test_a_description_is_cut_and_can_be_encoded() -> None:
    info = describe(ValueError("\ud800" + "x" * 100_000), 1)
    assert len(info.message) == 2_000
    assert len(info.traceback) == 8_000
    info.message.encode()
    info.traceback.encode()


def test_a_description_names_the_module_of_the_type() -> None:
    assert describe(asyncio.CancelledError(), 1).type == "asyncio.exceptions.CancelledError"
    assert describe(KeyError("x"), 1).type == "KeyError"

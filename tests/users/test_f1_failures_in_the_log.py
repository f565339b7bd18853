"""F1, P1, P6, P20: the log says why an attempt failed; never with its arguments or its result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bursts import Burst, Call, burst

APP = "tests.apps.logging_app"
ARGUMENT = "argument-8461"
KINDS = ("loop", "thread", "process")
ALL: list[Call] = [
    *[(f"fail_in_{kind}", "work", {"secret": ARGUMENT}) for kind in KINDS],
    ("retry", "work", {"secret": ARGUMENT}),
    ("say_in_loop", "work", {"number": 8462}),
    ("unstorable", "work", {}),
    ("fail_in_loop", "work", {"secret": 8463}),
]


@pytest.fixture(scope="module")
def as_json(tmp_path_factory: pytest.TempPathFactory) -> Burst:
    return burst(tmp_path_factory.mktemp("json"), APP, ALL, "--log-format", "json")


@pytest.mark.parametrize("kind", KINDS)
def test_f1_a_failed_attempt_is_logged_with_its_message_and_traceback(
    as_json: Burst, kind: str
) -> None:
    """F1."""
    [line] = [
        line
        for line in as_json.of("job.failed")
        if line["task"] == f"fail_in_{kind}" and line["reason"] == "exhausted"
    ]
    assert line["error"] == f"bad thing with {len(ARGUMENT)} and more"
    assert line["error_type"] == "ValueError"
    assert line["traceback"].endswith(f"ValueError: bad thing with {len(ARGUMENT)}\nand more\n")
    assert 'raise ValueError(f"bad thing' in line["traceback"]


def test_f1_the_console_prints_the_traceback_below_the_line(tmp_path: Path) -> None:
    """F1."""
    text = burst(tmp_path, APP, ALL[:1]).text
    [at] = [n for n, line in enumerate(text.splitlines()) if "job.failed" in line]
    line, below, *rest = text.splitlines()[at:]
    assert f"error='bad thing with {len(ARGUMENT)} and more'" in line
    assert "error_type=ValueError" in line
    assert "traceback" not in line
    assert below == "Traceback (most recent call last):"
    assert "and more" in rest


def test_f1_a_result_that_can_not_be_stored_is_logged_by_its_message(as_json: Burst) -> None:
    """F1, P20: an error of ours has the name that users know, and no frames of ours."""
    [line] = [line for line in as_json.of("job.failed") if line["task"] == "unstorable"]
    assert line["error_type"] == "headrace.NotSerializable"
    assert line["error"].startswith("result is a object, which can't be encoded")
    assert "traceback" not in line


def test_f1_arguments_that_can_not_be_decoded_are_logged_by_their_message(as_json: Burst) -> None:
    """F1."""
    [line] = [line for line in as_json.of("job.failed") if line["reason"] == "undecodable"]
    assert line["error_type"] == "msgspec.ValidationError"
    assert line["error"] == "Expected `str`, got `int` - at `$.secret`"
    assert "traceback" not in line


def test_f1_arguments_and_results_are_never_logged(as_json: Burst) -> None:
    """F1: an error's own message may hold them; here it does not."""
    for text in (ARGUMENT, "a result", "8463"):
        assert text not in as_json.text


def test_p1_an_event_says_whether_the_attempt_or_the_job_has_ended(as_json: Burst) -> None:
    """P1."""
    [retrying] = as_json.of("attempt.retrying")
    assert (retrying["task"], retrying["level"]) == ("retry", "warning")
    assert retrying["retry_in_ms"] == 3_600_000
    assert retrying["error_type"] == "headrace.RetryLater"
    assert "not yet" in retrying["traceback"]
    assert {line["level"] for line in as_json.of("job.failed")} == {"error"}
    [completed] = as_json.of("job.completed")
    assert set(completed) == {
        *("timestamp", "level", "event", "job_id", "task", "queue", "start", "duration_ms"),
    }
    assert not [line for line in as_json.lines if line["event"] == "job.finished"]


@pytest.mark.parametrize("kind", KINDS)
def test_p6_a_traceback_begins_with_the_user_s_code(as_json: Burst, kind: str) -> None:
    """P6: no frame of the worker, of a pool of threads, or between middleware and handler."""
    [line] = [
        line
        for line in as_json.of("job.failed")
        if line["task"] == f"fail_in_{kind}" and line["reason"] == "exhausted"
    ]
    frames = [part for part in line["traceback"].splitlines() if part.startswith('  File "')]
    names = [frame.rpartition(" in ")[2] for frame in frames]
    around = [] if kind == "process" else ["around"]
    assert names == [*around, f"fail_in_{kind}", "fail"]

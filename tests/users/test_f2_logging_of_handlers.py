"""F2, F3, P2: what handlers log comes out as the worker's own lines do, with their job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bursts import Burst, burst

APP = "tests.apps.logging_app"
KINDS = ("loop", "thread", "process")
ALL = [(f"say_in_{kind}", "work", {"number": number}) for number, kind in enumerate(KINDS)]


@pytest.fixture(scope="module")
def as_json(tmp_path_factory: pytest.TempPathFactory) -> Burst:
    return burst(tmp_path_factory.mktemp("json"), APP, ALL, "--log-format", "json")


@pytest.fixture(scope="module")
def as_text(tmp_path_factory: pytest.TempPathFactory) -> Burst:
    return burst(tmp_path_factory.mktemp("text"), APP, ALL, "--log-level", "debug")


@pytest.mark.parametrize("number", range(3), ids=KINDS)
def test_f2_standard_logging_of_a_handler_is_formatted(as_json: Burst, number: int) -> None:
    """F2: with the level, what was passed by ``extra``, and its logger."""
    [line] = as_json.of(f"standard info {number}")
    assert (line["level"], line["customer"], line["logger"]) == ("info", "c-7", "shop.mail")


def test_f2_warnings_of_a_handler_are_lines_too(as_json: Burst) -> None:
    """F2."""
    lines = [line for line in as_json.lines if line.get("logger") == "py.warnings"]
    assert len(lines) == len(KINDS)
    for line in lines:
        assert "UserWarning: careful with " in line["event"]
        assert (line["level"], line["queue"]) == ("warning", "work")


def test_f2_the_traceback_of_a_handler_s_own_line_is_in_it(as_json: Burst) -> None:
    """F2: nothing stands between the lines of JSON."""
    for event in ("standard exception", "structured 100 %"):
        lines = as_json.of(event)
        assert len(lines) == len(KINDS)
        for line in lines:
            assert line["level"] == "error"
            assert "ValueError: invalid literal for int()" in line["exception"]


def test_f2_what_a_handler_passes_along_replaces_no_field_of_the_line(as_json: Burst) -> None:
    """F2: neither the message nor the level, whatever names it takes."""
    line, *_ = as_json.of("standard exception")
    assert line["extra_event"] == "signup"
    line, *_ = as_json.of("structured 100 %")
    assert (line["level"], line["logger"], line["name"]) == ("error", "shop.bill", "Ann")


def test_f2_the_console_prints_the_traceback_of_a_handler_s_own_line_below(as_text: Burst) -> None:
    """F2."""
    assert as_text.text.count("\nValueError: invalid literal for int()") == 2 * len(KINDS)


def test_f2_the_level_of_the_command_line_counts_for_handlers(
    as_json: Burst, as_text: Burst
) -> None:
    """F2."""
    assert as_json.of("standard debug") == []
    assert as_text.text.count("standard debug") == len(KINDS)


@pytest.mark.parametrize("number", range(3), ids=KINDS)
@pytest.mark.parametrize("event", ["standard info {}", "structured info"])
def test_f3_each_line_of_a_handler_has_its_job(as_json: Burst, event: str, number: int) -> None:
    """F3: in the event loop, in threads and in processes alike."""
    task = f"say_in_{KINDS[number]}"
    [line] = [line for line in as_json.of(event.format(number)) if line["task"] == task]
    [end] = [line for line in as_json.of("job.completed") if line["task"] == task]
    for name in ("job_id", "queue", "start"):
        assert line[name] == end[name]


@pytest.mark.parametrize("kind", KINDS)
def test_f3_each_line_of_a_handler_has_its_job_on_the_console(as_text: Burst, kind: str) -> None:
    """F3."""
    lines = [line for line in as_text.text.splitlines() if f"task=say_in_{kind}" in line]
    for text in ("standard info", "structured info", "standard exception"):
        assert [line for line in lines if text in line and "job_id=" in line], text


def test_p2_lines_of_json_begin_with_timestamp_level_and_event(as_json: Burst) -> None:
    """P2: the worker's own lines and those of handlers."""
    for line in as_json.lines:
        assert list(line)[:3] == ["timestamp", "level", "event"], line


def test_p3_a_worker_names_its_queues_and_tasks_when_it_starts(as_json: Burst) -> None:
    """P3."""
    [line] = as_json.of("worker.started")
    assert {"say_in_loop", "retry"} <= set(line["tasks"])
    assert line["queues"] == {"work": 1}
    assert line["lanes"]["default"] == line["concurrency"]


def test_p3_long_lists_of_names_are_cut(tmp_path: Path) -> None:
    """P3."""
    [line] = burst(tmp_path, "tests.apps.large_app", [], "--log-format", "json").of(
        "worker.started"
    )
    assert len(line["tasks"]) == 21
    assert line["tasks"][-1] == "… and 80 more"
    assert len(line["queues"]) == 21
    assert line["queues"]["…"] == 80

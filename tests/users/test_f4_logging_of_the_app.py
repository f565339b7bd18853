"""F4: an app's own logging is left alone, and gets the worker's events."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App, JobLogFilter, Worker
from tests.support.bursts import Call, burst
from tests.support.until import patience

APP = "tests.apps.logging_app"
KINDS = ("loop", "thread", "process")
CALLS: list[Call] = [
    *[(f"say_in_{kind}", "work", {"number": number}) for number, kind in enumerate(KINDS)],
    ("fail_in_loop", "work", {"secret": "x"}),
]


def test_f4_logging_that_an_app_has_set_up_stays(tmp_path: Path) -> None:
    """F4: events and handlers' lines go there, in process slots too."""
    text = burst(tmp_path, APP, CALLS, APP_LOGGING="basic").text
    lines = [line for line in text.splitlines() if line.startswith("BASIC ")]
    assert "BASIC INFO headrace job.completed job_id=" in text
    assert "BASIC ERROR headrace job.failed job_id=" in text
    assert "\nTraceback (most recent call last):\n" in text
    for number in range(len(KINDS)):
        assert lines.count(f"BASIC INFO shop.mail standard info {number}") == 1
    assert '{"timestamp"' not in text
    assert "[info     ]" not in text


def test_f4_structlog_that_an_app_has_configured_stays(tmp_path: Path) -> None:
    """F3, F4: events and handlers' lines have one format, in process slots too, with their job."""
    text = burst(tmp_path, APP, CALLS, APP_LOGGING="structlog").text
    assert "event='worker.started' worker=" in text
    assert "event='job.failed' job_id=" in text
    lines = [line for line in text.splitlines() if line.startswith("event='structured info'")]
    for number, kind in enumerate(KINDS):
        [line] = [line for line in lines if f" task='say_in_{kind}' " in line]
        assert f" number={number} job_id='" in line


@pytest.mark.parametrize("how", ["option", "variable"])
def test_f4_logging_is_left_alone_where_that_is_asked_for(tmp_path: Path, how: str) -> None:
    """F4: then the standard library shows warnings and errors only."""
    words = ["--no-log-setup"] if how == "option" else []
    variables = {} if how == "option" else {"HEADRACE_NO_LOG_SETUP": "1"}
    text = burst(tmp_path, APP, CALLS, *words, **variables).text
    assert "\njob.failed job_id=" in text
    assert "job.completed" not in text
    assert "standard exception\n" in text


async def test_f4_an_embedded_worker_logs_to_the_standard_library(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F4: caplog and whatever else hangs on it see events with their fields."""
    app = App("memory://")

    @app.task(name="boom", max_attempts=1)
    async def boom(number: int) -> None:
        raise ValueError(f"bad thing {number}")

    caplog.set_level(logging.INFO, "headrace")
    async with app:
        job = await boom.enqueue(3)
        await Worker(app, burst=True).run()
    [record] = [record for record in caplog.records if vars(record).get("event") == "job.failed"]
    found = vars(record)
    assert (record.name, record.levelno) == ("headrace", logging.ERROR)
    assert (found["job_id"], found["task"], found["start"]) == (job.id, "boom", 1)
    assert (found["error_type"], found["error"]) == ("ValueError", "bad thing 3")
    assert found["traceback"].endswith("ValueError: bad thing 3\n")
    assert record.getMessage().startswith(f"job.failed job_id={job.id} task=boom queue=default")
    assert "ValueError: bad thing 3" in caplog.text


class Keeper(logging.Handler):
    """Keeps the records that it handles."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


async def test_f4_a_filter_adds_the_job_to_records_of_handlers() -> None:
    """F3, F4: for logging of one's own."""
    handler = Keeper()
    handler.addFilter(JobLogFilter())
    logger = logging.getLogger("a shop of its own")
    logger.addHandler(handler)
    app = App("memory://")

    @app.task(name="in_loop")
    async def in_loop() -> None:
        logger.warning("here")

    @app.task(name="in_thread")
    def in_thread() -> None:
        logger.warning("here", extra={"queue": "one of its own"})

    async with app:
        jobs = [await in_loop.enqueue(), await in_thread.enqueue()]
        await Worker(app, burst=True).run()
    logger.warning("outside")
    logger.removeHandler(handler)
    found = {vars(record).get("job_id"): vars(record) for record in handler.records}
    assert set(found) == {jobs[0].id, jobs[1].id, None}
    assert [(found[job.id]["task"], found[job.id]["start"]) for job in jobs] == [
        ("in_loop", 1),
        ("in_thread", 1),
    ]
    assert [found[job.id]["queue"] for job in jobs] == ["default", "one of its own"]


SILENT = """
import asyncio
from headrace import App, Worker

app = App("memory://")

@app.task(name="boom", max_attempts=1)
async def boom() -> None:
    raise ValueError("bad thing")

async def main():
    async with app:
        await boom.enqueue()
        await Worker(app, burst=True).run()

asyncio.run(main())
"""

BY_STRUCTLOG = """
import structlog, sys
structlog.configure(
    processors=[structlog.processors.JSONRenderer()],
    logger_factory=structlog.PrintLoggerFactory(sys.stderr),
)
"""


def ran(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=True,
    )


def test_f4_a_program_that_has_set_nothing_up_reads_of_failures_on_standard_error() -> None:
    """F4: as text, and of nothing else."""
    done = ran(SILENT)
    first, *below = done.stderr.splitlines()
    assert first.startswith("job.failed job_id=")
    assert first.endswith("error_type=ValueError error='bad thing' reason=exhausted")
    assert below[-1] == "ValueError: bad thing"
    assert done.stdout == ""


def test_f4_a_program_that_logs_by_structlog_alone_has_events_there() -> None:
    """F4."""
    lines = [json.loads(line) for line in ran(BY_STRUCTLOG + SILENT).stderr.splitlines()]
    [failed] = [line for line in lines if line["event"] == "job.failed"]
    assert failed["error"] == "bad thing"
    assert lines[0]["event"] == "worker.started"

"""F22: starts, failures and stalls have one word each, wherever they are seen."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest

from headrace import App, Context, JobFailed, JobStatus, JobSummary, Worker
from headrace.testing import running
from tests.support.project import Project

COUNTS = {"starts", "failures", "stalls"}


def test_f22_what_is_read_has_the_same_names_and_no_attempt() -> None:
    """F22: one letter had made another meaning."""
    for kind in (JobStatus, JobSummary):
        names = {field.name for field in dataclasses.fields(kind)}
        assert names >= COUNTS
        assert not {"attempt", "attempts", "tries", "errors_count"} & names
    mine = {name for name, _ in inspect.getmembers(Context)}
    assert mine >= {"start", "failures", "stalls", "max_attempts"}
    assert not {"attempt", "attempts", "starts"} & mine


async def test_f22_they_count_what_they_say(app: App[None]) -> None:
    """F22: the table of concepts.md, and a redrive."""
    seen: list[tuple[int, int]] = []

    @app.task(name="fail", max_attempts=2, retry=lambda failures, error: 0)
    async def fail(context: Context) -> None:
        seen.append((context.start, context.failures))
        raise ValueError("no")

    handle = await fail.enqueue()
    status = await handle.status()
    assert (status.starts, status.failures, status.stalls) == (0, 0, 0)
    async with running(Worker(app)):
        with pytest.raises(JobFailed):
            await handle.result()
        status = await handle.status()
        assert (status.starts, status.failures, status.stalls) == (2, 2, 0)
        assert [error.start for error in status.errors] == [2, 1]
        assert await app.queue("default").redrive(handle.id) == 1
        with pytest.raises(JobFailed):
            await handle.result()
    status = await handle.status()
    assert (status.starts, status.failures, status.stalls) == (4, 2, 0)
    assert seen == [(1, 0), (2, 1), (3, 0), (4, 1)]
    assert [error.start for error in status.errors] == [4, 3]


async def test_f22_a_shown_error_is_named_by_its_start(tmp_path: Path) -> None:
    """F22: `error 1: start 3` had two numbers, the newest first."""
    project = Project(tmp_path, {})
    async with App(project.url) as app:

        @app.task(name="fail", max_attempts=2, retry=lambda failures, error: 0)
        async def fail() -> None:
            raise ValueError("no")

        async with running(Worker(app)):
            with pytest.raises(JobFailed):
                await fail.options(id="x").enqueue_and_wait()
    shown = project.headrace("job", "show", "x").stdout.splitlines()
    assert [line.partition(":")[0] for line in shown if line.startswith("error")] == [
        "error of start 2",
        "error of start 1",
    ]
    titles = project.headrace("job", "list", "--state", "failed", "--wide").stdout.split("\n")[0]
    assert {"STARTS", "FAILURES", "STALLS"} <= set(titles.split())
    assert "ATTEMPT" not in titles

"""Mistakes in what is put are told before any I/O, with the value and what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import (
    App,
    At,
    Cron,
    Every,
    InvalidArguments,
    InvalidOption,
    StorageUnavailable,
    Task,
    UnknownTask,
    UsageError,
)
from tests.support.nowhere import unreachable_app

NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.fixture
async def app() -> AsyncIterator[App[None]]:
    async with unreachable_app() as app:
        yield app


@pytest.fixture
def report(app: App[None]) -> Task[..., None]:
    @app.task(name="report")
    async def report(region: str) -> None: ...

    return report


async def test_a_put_without_a_mistake_would_be_sent(
    app: App[None], report: Task[..., None]
) -> None:
    # What makes the other tests of this module mean something.
    with pytest.raises(StorageUnavailable):
        await app.schedules.put("one", report.job("eu"), Every(60))
    a_moment_ago = datetime.now(UTC) - timedelta(seconds=30)
    with pytest.raises(StorageUnavailable):
        await app.schedules.put("one", report.job("eu"), At(a_moment_ago))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"jitter": 61}, "jitter=61 s is over .*every 60 s: use 60 s at most"),
        ({"jitter": "x"}, "jitter='x' is not a duration"),
        ({"catch_up": 2_000}, "catch_up=2000 is not known"),
        ({"overlap": "no"}, "overlap='no' is not known"),
        ({"start": datetime(2031, 1, 1)}, "start=.* is naive"),  # noqa: DTZ001
        ({"start": NEW_YEAR, "end": NEW_YEAR - timedelta(1)}, "end=.* is before start="),
        ({"end": datetime(2020, 1, 1, tzinfo=UTC)}, "'one' would never fire: every 60 s has no"),
        ({"paused": "yes"}, "paused='yes' is not valid"),
    ],
    ids=lambda said: next(iter(said)) if isinstance(said, dict) else "",
)
async def test_options_out_of_bounds(
    app: App[None], report: Task[..., None], said: Any, words: str
) -> None:
    with pytest.raises(InvalidOption, match=words):
        await app.schedules.put("one", report.job("eu"), Every(60), **said)


async def test_an_instant_that_has_passed(app: App[None], report: Task[..., None]) -> None:
    passed = datetime.now(UTC) - timedelta(minutes=2)
    words = r"'one' would never fire: at .*Z has no occurrence from now, .* on: say a later"
    with pytest.raises(InvalidOption, match=words):
        await app.schedules.put("one", report.job("eu"), At(passed))


async def test_a_naive_instant_and_a_timing_that_is_none(
    app: App[None], report: Task[..., None]
) -> None:
    with pytest.raises(InvalidOption, match="naive"):
        At(datetime(2031, 1, 1))  # noqa: DTZ001
    text: Any = "0 9 * * 1"
    with pytest.raises(InvalidOption, match=r"is no timing: pass Cron\('0 9"):
        await app.schedules.put("one", report.job("eu"), text)


async def test_arguments_that_do_not_fit_the_task(app: App[None], report: Task[..., None]) -> None:
    with pytest.raises(InvalidArguments, match="region: Expected `str`, got `int`"):
        await app.schedules.put("one", report.job(5), Every(60))
    by_name = app.task_ref("report").job(region=5)
    with pytest.raises(InvalidArguments, match="region: Expected `str`, got `int`"):
        await app.schedules.put("one", by_name, Every(60))


async def test_what_is_no_job_of_a_schedule(app: App[None], report: Task[..., None]) -> None:
    with pytest.raises(InvalidOption, match="delay=5 makes no sense for a schedule's job"):
        await app.schedules.put("one", report.options(delay=5).job("eu"), Every(60))
    wrong: Any = report
    with pytest.raises(UsageError, match=r"is no job: pass what task\.job"):
        await app.schedules.put("one", wrong, Every(60))
    with pytest.raises(UnknownTask, match="say its queue="):
        await app.schedules.put("one", app.task_ref("mail.send").job(), Every(60))


@pytest.mark.parametrize(
    "schedule_id", ["", "x" * 201, "a\nb", 5], ids=["none", "long", "control", "int"]
)
async def test_ids_that_are_none(app: App[None], report: Task[..., None], schedule_id: Any) -> None:
    schedules = app.schedules
    for call in (
        schedules.put(schedule_id, report.job("eu"), Cron("@daily")),
        schedules.get(schedule_id),
        schedules.history(schedule_id),
        schedules.pause(schedule_id),
        schedules.resume(schedule_id),
        schedules.trigger(schedule_id),
        schedules.delete(schedule_id),
    ):
        with pytest.raises(InvalidOption, match=r"schedule id .*1 to 200 bytes"):
            await call

"""Mistakes in a declaration are told where it is made, with the value and what to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import (
    App,
    Every,
    InvalidArguments,
    InvalidOption,
    Job,
    NotSerializable,
    PayloadTooLarge,
    Task,
    UnknownTask,
    UsageError,
)
from headrace.storage.limits import SCHEDULES_LIMIT
from tests.support.nowhere import unreachable_app

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)
Report = Task[..., None]


@pytest.fixture
def app() -> App[None]:
    return unreachable_app()


@pytest.fixture
def report(app: App[None]) -> Report:
    @app.task(name="report")
    async def report(region: str, depth: int = 1) -> None: ...

    return report


@pytest.mark.parametrize(
    ("args", "kind", "words"),
    [
        (None, InvalidArguments, "missing a required argument: 'region'"),
        ({"region": "eu", "more": 1}, InvalidArguments, "unexpected keyword argument 'more'"),
        ({"region": 5}, InvalidArguments, "region: Expected `str`, got `int`"),
        ({"region": "eu", "depth": "x"}, InvalidArguments, "depth: Expected `int`, got `str`"),
        ({"region": object()}, NotSerializable, r"args\.region"),
        ({"region": "x" * 1_100_000}, PayloadTooLarge, "1,048,576"),
        (["eu"], InvalidOption, r"args=\['eu'\]: pass a mapping of arguments by name"),
        ({1: "eu"}, InvalidOption, r"args=\{1: 'eu'\}: pass a mapping of arguments by name"),
    ],
    ids=["missing", "unknown", "type", "default", "object", "large", "list", "number"],
)
def test_arguments_that_do_not_fit(
    app: App[None], report: Report, args: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        app.every(5, args=args)(report)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"id": "x"},
            "id='x' makes no sense for a schedule's job: each occurrence's job has an id",
        ),
        ({"on_conflict": "update"}, "on_conflict='update' makes no sense for a schedule's job"),
        ({"debounce": 2}, "debounce=2 makes no sense for a schedule's job: the timing says how"),
        ({"throttle": 60}, "throttle=60 makes no sense for a schedule's job: the timing says how"),
        ({"delay": 5}, "delay=5 makes no sense for a schedule's job: the timing says when"),
        ({"run_at": NEW_YEAR}, "run_at=datetime.* makes no sense"),
        ({"expires": NEW_YEAR}, "expires=datetime.* makes no sense .*say a duration"),
        ({"wait_timeout": 5}, "wait_timeout=5 makes no sense"),
        ({"priority": 10}, "priority=10 is out of bounds"),
        ({"queue": "a b"}, "queue 'a b' is not valid"),
        ([("queue", "x")], r"options=\[\('queue', 'x'\)\]: pass a mapping"),
    ],
    ids=[
        "id",
        "on_conflict",
        "debounce",
        "throttle",
        "delay",
        "run_at",
        "expires",
        "wait_timeout",
        "priority",
        "queue",
        "list",
    ],
)
def test_options_that_make_no_sense(
    app: App[None], report: Report, options: Any, words: str
) -> None:
    with pytest.raises(InvalidOption, match=words):
        app.every(5, args={"region": "eu"}, options=options)(report)


def test_an_option_that_there_is_not(app: App[None], report: Report) -> None:
    options: Any = {"countdown": 5}
    with pytest.raises(TypeError, match="'countdown': here it is delay="):
        app.every(5, args={"region": "eu"}, options=options)(report)


JOBS: dict[str, tuple[Callable[[Report], Any], type[Exception], str]] = {
    "id": (
        lambda task: task.options(id="x").job("eu"),
        InvalidOption,
        "id='x' makes no sense for a schedule's job",
    ),
    "delay": (lambda task: task.options(delay=1.5).job("eu"), InvalidOption, r"delay=1\.5 makes"),
    "run_at": (
        lambda task: task.options(run_at=NEW_YEAR).job("eu"),
        InvalidOption,
        r"run_at=2030-01-01T00:00:00\+00:00 makes no sense",
    ),
    "expires": (
        lambda task: task.options(expires=NEW_YEAR).job("eu"),
        InvalidOption,
        r"expires=2030-01-01T00:00:00\+00:00 makes no sense .*say a duration",
    ),
    "types": (lambda task: task.job(5), InvalidArguments, "region: Expected `str`, got `int`"),
    "task": (lambda task: task, UsageError, r"is no job: pass what task\.job\(\.\.\.\) returns"),
    "payload": (
        lambda _task: Job(id="x", queue="q", task="t", payload=b"x" * 1_100_000),
        PayloadTooLarge,
        "1,048,576",
    ),
}


@pytest.mark.parametrize("mistake", JOBS)
def test_jobs_that_no_schedule_can_have(app: App[None], report: Report, mistake: str) -> None:
    make, kind, words = JOBS[mistake]
    with pytest.raises(kind, match=words):
        app.schedule("x", make(report), Every(5))


def test_a_task_by_name_without_a_queue(app: App[None]) -> None:
    with pytest.raises(UnknownTask, match=r"'mail\.send' is not registered .*say its queue="):
        app.schedule("x", app.task_ref("mail.send").job(), Every(5))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"jitter": 6}, "jitter=6 s is over .*every 5 s: use 5 s at most"),
        ({"catch_up": "all"}, "catch_up='all' is not known"),
        ({"id": "a\nb"}, r"schedule id 'a\\nb' is not valid: use 1 to 200 bytes"),
        ({"id": "x" * 201}, "schedule id 'xxx.*1 to 200 bytes"),
        ({"start": datetime(2030, 1, 1)}, "start=.* is naive"),  # noqa: DTZ001
        ({"start": NEW_YEAR, "end": NEW_YEAR - timedelta(1)}, "end=.* is before start="),
    ],
    ids=["jitter", "catch_up", "control", "long", "naive", "window"],
)
def test_policies_that_are_not_valid(app: App[None], report: Report, said: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        app.every(5, args={"region": "eu"}, **said)(report)


@pytest.mark.parametrize(
    "interval", [0, -1, 0.099, "5", None, timedelta(0), float("nan")], ids=repr
)
def test_intervals_that_are_none(app: App[None], interval: Any) -> None:
    with pytest.raises(InvalidOption, match="interval="):
        app.every(interval)


def test_a_decorator_without_its_timing(app: App[None]) -> None:
    async def tick() -> None: ...

    wrong: Any = tick
    with pytest.raises(InvalidOption, match="pass text, as in '0 9"):
        app.cron(wrong)
    with pytest.raises(InvalidOption, match=r"interval=.*is not a duration"):
        app.every(wrong)


def test_an_id_that_is_taken(app: App[None], report: Report) -> None:
    app.every(5, id="x", args={"region": "eu"})(report)
    with pytest.raises(UsageError, match="the schedule id 'x' is taken: pass another id"):
        app.schedule("x", report.job("eu"), Every(5))


def test_more_than_a_tenant_can_have(app: App[None], report: Report) -> None:
    job, timing = report.job("eu"), Every(5)
    for number in range(SCHEDULES_LIMIT):
        app.schedule(str(number), job, timing)
    with pytest.raises(InvalidOption, match=r"'more' would be one too many: .* 100,000 at most"):
        app.schedule("more", job, timing)


def test_a_name_of_a_task_that_is_too_long_for_an_id(app: App[None]) -> None:
    @app.task(name="x" * 256)
    async def tick() -> None: ...

    with pytest.raises(InvalidOption, match=r"schedule id 'xxx.*1 to 200 bytes"):
        app.every(5)(tick)
    app.every(5, id="tick")(tick)

"""Schedules that code declares: above tasks, instead of ``@app.task``, and by a job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from headrace import App, At, Blueprint, Context, Cron, Every, Job, Task, UsageError
from headrace.app import declared_of
from headrace.schedule import ScheduleBody


@pytest.fixture
def app() -> App[None]:
    return App("memory://", name="tests")


def schedules(app: App[Any]) -> dict[str, ScheduleBody]:
    return declared_of(app).schedules


def arguments(body: ScheduleBody) -> Any:
    return msgspec.json.decode(body.job.payload)


def test_a_schedule_stands_above_its_task(app: App[None]) -> None:
    @app.cron("0 9 * * 1", tz="America/New_York")
    @app.task(name="report", queue="reports")
    async def report() -> None: ...

    assert app.tasks == {"report": report}
    assert list(schedules(app)) == ["report"]
    body = schedules(app)["report"]
    assert body.timing == Cron("0 9 * * 1", tz="America/New_York")
    assert (body.job.task, body.job.queue, body.set_by) == ("report", "reports", "code")


def test_a_schedule_makes_a_function_a_task(app: App[None]) -> None:
    @app.every(30)
    def tick() -> int:
        return 1

    assert isinstance(tick, Task)
    assert tick() == 1
    assert schedules(app)[tick.name].timing == Every(30)
    assert app.tasks == {tick.name: tick}


def test_several_on_one_task_are_numbered_from_the_function_upwards(app: App[None]) -> None:
    @app.every(3, args={"region": "us"})
    @app.every(2, id="own", args={"region": "eu"})
    @app.every(1, args={"region": "ap"})
    @app.task(name="report")
    async def report(region: str) -> None: ...

    found = {name: (str(body.timing), arguments(body)) for name, body in schedules(app).items()}
    assert found == {
        "report": ("every 1 s", {"region": "ap"}),
        "own": ("every 2 s", {"region": "eu"}),
        "report-2": ("every 3 s", {"region": "us"}),
    }


def test_a_context_is_no_argument_of_a_schedule(app: App[None]) -> None:
    @app.every(1, args={"number": 5})
    async def look(context: Context, number: int, more: int = 1) -> None: ...

    assert arguments(schedules(app)[look.name]) == {"number": 5}


def test_options_are_those_of_its_jobs(app: App[None]) -> None:
    @app.every(1, options={"priority": 8, "expires": 60, "queue": "fast", "timeout": 5})
    @app.task(priority=1, queue="slow")
    async def tick() -> None: ...

    job = schedules(app)[tick.name].job
    assert (job.priority, job.queue, job.expires_in_ms) == (8, "fast", 60_000)
    assert msgspec.json.decode(job.options) == {"timeout_ms": 5_000}


@pytest.mark.parametrize("pace", ["debounce", "throttle"])
def test_each_occurrence_of_a_task_with_a_pace_runs_by_itself(app: App[None], pace: str) -> None:
    options: Any = {pace: 60}

    @app.every(1)
    @app.task(name="index", **options)
    async def index() -> None: ...

    @app.every(1)
    @app.task(name="plain")
    async def plain() -> None: ...

    app.schedule("by-job", index.job(), Every(1))
    found = {name: body.job.request("x") for name, body in schedules(app).items()}
    assert found["index"] == found["by-job"] == replace(found["plain"], task="index")
    with pytest.raises(UsageError, match="id='7' makes no sense for a schedule's job"):
        app.schedule("seven", index.options(id="7").job(), Every(1))


def test_the_policy_is_stored(app: App[None]) -> None:
    start, end = datetime(2030, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)

    @app.cron(
        "@hourly", catch_up=5, jitter=timedelta(minutes=2), overlap="skip", start=start, end=end
    )
    async def tick() -> None: ...

    body = schedules(app)[tick.name]
    assert (body.catch_up, body.jitter_ms, body.overlap) == (5, 120_000, "skip")
    assert body.start_ms == start.timestamp() * 1000
    assert body.end_ms == end.timestamp() * 1000


def test_a_job_of_any_task_is_scheduled(app: App[None]) -> None:
    @app.task(name="report")
    async def report(region: str) -> None: ...

    once = At(datetime(2030, 1, 1, tzinfo=UTC))
    app.schedule("eu", report.options(priority=8).job("eu"), once, catch_up="latest")
    app.schedule("mail", app.task_ref("mail.send", queue="mails").job(to="a@b.c"), Every(60))
    eu, mail = schedules(app)["eu"], schedules(app)["mail"]
    assert (eu.timing, eu.catch_up, eu.job.priority, arguments(eu)) == (
        once,
        "latest",
        8,
        {"region": "eu"},
    )
    assert (mail.job.task, mail.job.queue, mail.job.lane) == ("mail.send", "mails", "")


def test_a_job_that_was_scheduled_can_still_be_sent(app: App[None]) -> None:
    @app.task
    async def tick() -> None: ...

    job: Job[None] = tick.job()
    app.schedule("one", job, Every(1))
    app.schedule("two", job, Every(1))
    assert schedules(app)["one"].job == schedules(app)["two"].job


def test_a_warning_about_its_function_says_the_line_of_the_decorator(app: App[None]) -> None:
    typed = compile("@app.every(1)\ndef tick(): ...", "<typed>", "exec")
    with pytest.warns(UserWarning, match="is in no file") as warnings:
        exec(typed, {"app": app, "__name__": "__main__"})  # noqa: S102 (what a prompt does)
    [warned] = warnings
    assert (warned.filename, warned.lineno) == ("<typed>", 1)


late = App("memory://", name="late")


@late.every(1, args={"value": "x"})
async def later(value: Later) -> None: ...


Later = int


def test_types_that_are_defined_later_are_held_against_arguments_once_the_app_is_loaded() -> None:
    with pytest.raises(UsageError, match="value: Expected `int`, got `str`"):
        late.load()


class TestBlueprints:
    def test_schedules_come_along_when_it_is_included(self, app: App[None]) -> None:
        mail: Blueprint[None] = Blueprint(prefix="mail.", queue="mails")

        @mail.every(60, args={"to": "a@b.c"})
        @mail.cron("@daily", id="daily", args={"to": "b@c.d"})
        @mail.task
        async def send(to: str) -> None: ...

        app.include(mail, prefix="shop.")
        name = "shop.mail." + send.function.__qualname__
        assert list(schedules(app)) == ["daily", name]
        body = schedules(app)[name]
        assert (body.job.task, body.job.queue) == (name, "mails")

    def test_those_declared_later_come_along_too_from_however_far_in(self, app: App[None]) -> None:
        inner: Blueprint[None] = Blueprint()
        outer: Blueprint[None] = Blueprint()
        outer.include(inner)
        app.include(outer, prefix="x.")

        @inner.every(5)
        async def tick() -> None: ...

        assert list(schedules(app)) == [tick.name]
        assert tick.name.startswith("x.")

    def test_arguments_are_held_against_the_signature_before_it_is_included(self) -> None:
        mail: Blueprint[None] = Blueprint()
        with pytest.raises(UsageError, match="missing a required argument: 'to'"):

            @mail.every(5)
            async def send(to: str) -> None: ...

    def test_a_task_of_another_one_is_refused(self, app: App[None]) -> None:
        mail, other = Blueprint[None](), Blueprint[None]()

        @mail.task(name="send")
        async def send() -> None: ...

        with pytest.raises(UsageError, match="'send' is not of this blueprint"):
            other.every(5)(send)
        with pytest.raises(UsageError, match=r"'send' is not of this app.*include its blueprint"):
            app.every(5)(send)


class TestDigests:
    def declared(self, **changed: Any) -> ScheduleBody:
        app = App("memory://")

        @app.task(name="report")
        async def report(region: str, tags: Any = None) -> None: ...

        said: dict[str, Any] = {"args": {"region": "eu"}, "id": "one", **changed}
        app.cron(said.pop("expression", "@daily"), **said)(report)
        return schedules(app)[said["id"]]

    def test_a_declaration_has_the_digest_of_what_it_says(self) -> None:
        assert self.declared() == self.declared()
        assert len(self.declared().declaration) == 32

    @pytest.mark.parametrize(
        "changed",
        [
            {"expression": "@hourly"},
            {"tz": "Europe/Berlin"},
            {"args": {"region": "us"}},
            {"options": {"priority": 1}},
            {"catch_up": "latest"},
            {"jitter": 5},
            {"overlap": "skip"},
            {"end": datetime(2030, 1, 1, tzinfo=UTC)},
        ],
        ids=str,
    )
    def test_whatever_changes_changes_it(self, changed: dict[str, Any]) -> None:
        assert self.declared(**changed).declaration != self.declared().declaration

    def test_a_release_is_told_by_all_that_it_declares(self) -> None:
        assert self.declared(id="two").declaration == self.declared().declaration
        assert self.declared(id="two").release != self.declared().release
        assert declared_of(App("memory://")).release == declared_of(App("memory://")).release

    def test_the_order_of_a_set_is_that_of_no_process(self) -> None:
        code = (
            "from headrace import App\n"
            "from headrace.app import declared_of\n"
            "app = App('memory://')\n"
            "@app.every(1, args={'tags': {'a', 'b', 'c', 'd'}, 'more': [{'x': {'e', 'f', 'g'}}]})\n"
            "def report(tags: set[str], more: object) -> None: ...\n"
            "app.tasks['report'] = report\n"
            "print(declared_of(app).release)\n"
        )
        releases = {run(code, hash_seed=seed) for seed in ("1", "2", "3")}
        assert len(releases) == 1


def run(code: str, *, hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def at_a_prompt() -> Iterator[None]:
    sys.ps1 = ">>> "
    yield
    del sys.ps1


@pytest.mark.usefixtures("at_a_prompt")
def test_at_a_prompt_a_cell_can_be_run_again(app: App[None]) -> None:
    for interval in (1, 2):

        @app.every(interval)
        @app.task
        async def tick() -> None: ...

        app.schedule("own", tick.job(), Every(interval))
    assert {str(body.timing) for body in schedules(app).values()} == {"every 2 s"}
    assert len(schedules(app)) == 2

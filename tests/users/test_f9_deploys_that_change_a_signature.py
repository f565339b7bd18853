"""F9: a job whose arguments have another shape waits for a release that takes them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from headrace import App, InvalidArguments, InvalidOption, JobFailed, JobState, Worker
from headrace.events import AttemptEnded
from headrace.job import Job
from headrace.testing import EventLog, Kit, running
from tests.support.releases import Releases

NEW_SHAPE = Job("x", "mail", "send", b'{"to":"Ada","template":"welcome"}')
REFUSED = "release 1 refused the arguments: Object contains unknown field `template`"


def old(url: str = "memory://", **options: Any) -> App[Any]:
    app = App(url, tenant="f9", **{"release": "1", **options})

    @app.task(name="send", queue="mail")
    async def send(to: str) -> str:
        return f"1: {to}"

    return app


def new(url: str = "memory://", **options: Any) -> App[Any]:
    app = App(url, tenant="f9", release="2", **options)

    @app.task(name="send", queue="mail")
    async def send(to: str, template: str) -> str:
        return f"2: {template} to {to}"

    return app


@pytest.mark.parametrize("kind", ["redis", "file"])
async def test_f9_a_job_that_a_worker_refuses_waits_and_its_status_says_who_refused_what(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/data" if kind == "file" else request.getfixturevalue("redis_url")
    log = EventLog()
    async with new(url) as app, running(Worker(old(url), emit=log)):
        job = await app.enqueue("send", "Ada", "welcome")
        [put_back] = await log.wait(AttemptEnded)
        assert (put_back.outcome, put_back.error_type) == ("put_back", "msgspec.ValidationError")
        status = await job.status()
    assert (status.state, status.starts, status.failures) == (JobState.SCHEDULED, 1, 0)
    assert status.put_back is not None
    assert status.put_back.message == REFUSED


async def test_f9_jobs_of_both_releases_find_their_workers_while_a_deploy_lasts() -> None:
    before, after = old(), new()
    async with Releases(before, after) as releases:
        await before.enqueue("send", "Ada")
        assert await releases.work(after) == ["put_back"]
        await after.enqueue("send", "Bob", "welcome")
        assert await releases.work(before) == ["put_back"]
        releases.wait(30)
        assert sorted([*await releases.work(before)]) == ["1: Ada", "put_back"]
        releases.wait(30)
        assert await releases.work(after) == ["2: welcome to Bob"]


async def test_f9_after_the_grace_it_is_undecodable_and_the_error_says_who_refused_what() -> None:
    app = old(skew_grace=timedelta(minutes=1))
    async with Kit(app) as kit:
        [job] = await app.enqueue_many([NEW_SHAPE])
        await kit.run_until_idle()
        await kit.advance(60)
        [attempt] = await kit.run_until_idle()
        assert attempt.outcome == "put_back"
        assert isinstance(attempt.error, InvalidArguments)
        assert str(attempt.error) == REFUSED
        await kit.advance(30)
        await kit.run_until_idle()
        with pytest.raises(JobFailed, match=REFUSED) as failed:
            await job.result()
        assert failed.value.reason == "undecodable"
        status = await job.status()
    assert status.put_back is None
    assert [error.message for error in status.errors] == [REFUSED]


async def test_f9_without_a_grace_it_is_undecodable_at_once() -> None:
    app = old(skew_grace=0)
    async with Kit(app) as kit:
        [job] = await app.enqueue_many([NEW_SHAPE])
        await kit.run_until_idle()
        with pytest.raises(JobFailed, match=REFUSED):
            await job.result()


async def test_f9_a_value_of_another_type_is_undecodable_at_once() -> None:
    app = old()
    async with Kit(app) as kit:
        [job] = await app.enqueue_many([Job("x", "mail", "send", b'{"to":5}')])
        await kit.run_until_idle()
        with pytest.raises(JobFailed, match=r"Expected `str`, got `int` - at `\$\.to`"):
            await job.result()


class Mail(BaseModel):
    to: str
    kind: str


@pytest.mark.parametrize(
    ("mail", "what"),
    [
        (b'{"to":"Ada"}', "Object missing required field `kind` - at `$.mail`"),
        (b'{"to":"Ada","kind":1}', None),
    ],
)
async def test_f9_a_field_of_a_pydantic_model_may_be_missing_too(
    mail: bytes, what: str | None
) -> None:
    app = App("memory://", release="1")

    @app.task(name="send", queue="mail")
    async def send(mail: Mail) -> None: ...

    async with Kit(app) as kit:
        await app.enqueue_many([Job("x", "mail", "send", b'{"mail":%s}' % mail)])
        [attempt] = await kit.run_until_idle()
    assert attempt.outcome == ("failed" if what is None else "put_back")
    assert what is None or str(attempt.error) == f"release 1 refused the arguments: {what}"


async def test_f9_a_kit_tells_of_arguments_that_do_not_fit() -> None:
    app = old()
    async with Kit(app) as kit:
        with pytest.raises(InvalidArguments, match=REFUSED):
            await kit.perform(NEW_SHAPE)
        await app.enqueue_many([NEW_SHAPE])
        with pytest.raises(InvalidArguments, match=REFUSED):
            await kit.run_until_idle(raise_errors=True)


def test_f9_the_release_is_of_the_code_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert App("memory://").release is None
    monkeypatch.setenv("HEADRACE_RELEASE", "3f2a")
    assert App("memory://").release == "3f2a"
    assert App("memory://", release="2").release == "2"
    monkeypatch.setenv("HEADRACE_RELEASE", "")
    with pytest.raises(InvalidOption, match="HEADRACE_RELEASE is set but empty"):
        App("memory://")


@pytest.mark.parametrize("option", [{"skew_grace": -1}, {"skew_grace": "5m"}, {"release": ""}])
def test_f9_bad_options_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(option))):
        App("memory://", **option)
    if "skew_grace" in option:
        with pytest.raises(InvalidOption, match="skew_grace"):
            App("memory://").task(**option)

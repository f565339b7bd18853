"""F8: a job whose task no worker knows says so, wherever it is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import App, JobState, UnknownTask, Worker
from headrace.events import AttemptEnded
from headrace.testing import EventLog, Kit, running
from tests.support.project import Project

SHOP = """
    from headrace import App

    app = App()

    @app.task(queue="mail")
    async def send_mail(to: str) -> None: ...

    @app.task(queue="mail")
    async def bounce() -> None: ...
"""
TOLD = (
    "no worker of this queue knows the task 'shop.send_mial': worker w has 2 tasks, and not this "
    "one; perhaps 'shop.send_mail' was meant"
)


def shop(url: str = "memory://") -> App[Any]:
    app = App(url, tenant="f8")

    @app.task(name="shop.send_mail", queue="mail")
    async def send_mail(to: str) -> None: ...

    @app.task(name="shop.bounce", queue="mail")
    async def bounce() -> None: ...

    return app


@pytest.mark.parametrize("kind", ["redis", "file"])
async def test_f8_the_log_and_the_status_say_what_the_worker_knows(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/data" if kind == "file" else request.getfixturevalue("redis_url")
    log = EventLog()
    async with shop(url) as app, running(Worker(shop(url), name="w", emit=log)):
        job = await app.enqueue("shop.send_mial", queue="mail", to="Ada")
        [put_back] = await log.wait(AttemptEnded)
        assert (put_back.outcome, put_back.error_type) == ("put_back", "UnknownTask")
        status = await job.status()
        assert (status.state, status.starts, status.errors) == (JobState.SCHEDULED, 1, ())
        assert status.put_back is not None
        assert (status.put_back.type, status.put_back.message) == ("UnknownTask", TOLD)
        assert status.to_dict()["put_back"]["message"] == TOLD
        [row] = [row async for row in app.queue("mail").jobs("scheduled")]
        assert (row.error, row.message) == ("UnknownTask", TOLD)


async def test_f8_a_name_that_is_like_no_other_is_told_without_a_guess() -> None:
    app = shop()
    del app.tasks["shop.bounce"]
    async with Kit(app) as kit:
        await app.enqueue("xyz", queue="mail")
        [attempt] = await kit.run_until_idle()
    assert isinstance(attempt.error, UnknownTask)
    assert str(attempt.error).endswith("has 1 task, and not this one")


async def test_f8_a_module_that_was_left_out_of_the_name_is_guessed() -> None:
    app = shop()
    async with Kit(app) as kit:
        await app.enqueue("very.other.folder.send_mail", queue="mail")
        [attempt] = await kit.run_until_idle()
    assert "perhaps 'shop.send_mail' was meant" in str(attempt.error)


def test_f8_the_command_line_says_it(tmp_path: Path) -> None:
    project = Project(tmp_path, {"shop.py": SHOP})
    words = ("shop.send_mial", "-q", "mail", "--id", "welcome", "--args", '{"to":"Ada"}')
    assert project.headrace("enqueue", *words).returncode == 0
    worker = project.headrace("worker", "shop", "--burst", "--name", "w")
    assert worker.returncode == 0, worker.stderr
    shown = project.headrace("job", "show", "welcome", COLUMNS="300").stdout
    assert f": {TOLD}" in next(line for line in shown.splitlines() if "put back" in line)
    listed = project.headrace("queue", "list")
    assert listed.stderr == (
        f"Note: mail: a job waits, put back by workers. Job welcome: {TOLD[:200]}\n"
    )
    jobs = project.headrace("job", "list", COLUMNS="300").stdout
    assert "UnknownTask" in jobs

"""F19: a worker says which of its queues no task has, and which queues of tasks nobody serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import App, Worker
from headrace.events import QueueNotServed, QueueWithoutTasks
from headrace.testing import EventLog, running
from tests.support.project import Project

SHOP = """
    from headrace import App

    app = App()

    @app.task(queue="email")
    async def send(to: str) -> None: ...

    @app.task(queue="orders")
    async def ship() -> None: ...
"""


def shop(url: str) -> App[Any]:
    app = App(url, tenant="f19")

    @app.task(queue="email", name="send")
    async def send() -> None: ...

    @app.task(queue="orders", name="ship")
    async def ship() -> None: ...

    return app


@pytest.fixture(params=["redis", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        request.getfixturevalue("redis_url")
        if request.param == "redis"
        else f"file://{tmp_path}/data"
    )


async def test_f19_a_worker_warns_of_its_queue_without_tasks_and_of_queues_nobody_serves(
    url: str,
) -> None:
    log = EventLog()
    async with running(Worker(shop(url), ["emial"], name="w", emit=log)):
        await log.wait(QueueNotServed, count=2)
    assert log.of(QueueWithoutTasks) == [
        QueueWithoutTasks(worker="w", queue="emial", perhaps="email")
    ]
    assert log.of(QueueNotServed) == [
        QueueNotServed(worker="w", queue="email", tasks=["send"]),
        QueueNotServed(worker="w", queue="orders", tasks=["ship"]),
    ]


async def test_f19_what_another_live_worker_serves_is_not_warned_of(url: str) -> None:
    log = EventLog()
    other = EventLog()
    app = shop(url)
    async with (
        running(Worker(app, ["orders"], name="other", emit=other)),
        running(Worker(app, ["emial"], name="w", emit=log)),
    ):
        await log.wait(QueueNotServed)
    assert [event.queue for event in log.of(QueueNotServed)] == ["email"]


async def test_f19_a_worker_of_all_queues_warns_of_nothing(url: str) -> None:
    log = EventLog()
    async with running(Worker(shop(url), emit=log)):
        pass
    assert [*log.of(QueueWithoutTasks), *log.of(QueueNotServed)] == []


def test_f19_a_check_tells_the_same(tmp_path: Path) -> None:
    project = Project(tmp_path, {"shop.py": SHOP})
    ran = project.headrace("worker", "shop", "-q", "emial", "--check")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr == (
        "Note: no task of the app has the queue emial: perhaps email was meant.\n"
        "Note: this worker does not serve email, orders, which tasks have.\n"
    )
    ran = project.headrace("worker", "shop", "-q", "zzz,email,orders", "--check")
    assert ran.stderr == "Note: no task of the app has the queue zzz.\n"


def test_f19_the_log_has_both_warnings(tmp_path: Path) -> None:
    project = Project(tmp_path, {"shop.py": SHOP})
    ran = project.headrace("worker", "shop", "-q", "emial", "--burst", "--log-format", "json")
    assert ran.returncode == 0, ran.stderr
    assert '"queue.without_tasks"' in ran.stderr
    assert '"perhaps": "email"' in ran.stderr

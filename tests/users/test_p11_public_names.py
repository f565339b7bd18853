"""P11: what completion shows of an app and a job is what a program uses."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import (
    App,
    Blueprint,
    JobHandle,
    Queue,
    Schedules,
    SyncApp,
    SyncBulkWrite,
    SyncJobHandle,
    SyncQueue,
    SyncSchedules,
    SyncTask,
    Task,
)

APP = {
    *{
        "aclose",
        "connect",
        "enqueue",
        "enqueue_many",
        "find",
        "job",
        "queue",
        "queues",
        "schedules",
    },
    *{"bulk", "write_report"},
    *{"include", "load", "task", "task_ref"},
    *{"cron", "every", "schedule", "schedules"},
    *{"before_enqueue", "middleware", "on_failure", "on_retry", "on_success"},
}
OF_AN_APP = {
    *{"allow_eviction", "codec", "lifespan", "name", "release", "tasks", "tenant", "url"},
    *{"hooks", "middlewares", "preparers"},
}
SYNC_APP = (APP - {"aclose"}) | {"app", "bind", "close", "submit"}
HANDLE = {"cancel", "id", "outcome", "queue", "result", "status", "stream", "why"}


def public(value: Any) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


def test_p11_an_app_shows_nothing_of_its_insides() -> None:
    assert public(App("memory://")) == APP | OF_AN_APP


def test_p11_a_sync_app_shows_the_same_without_await() -> None:
    assert public(SyncApp("memory://")) == SYNC_APP


def test_p11_a_handle_shows_nothing_of_its_insides() -> None:
    assert public(App("memory://").job("x")) == HANDLE
    assert public(SyncApp("memory://").job("x")) == HANDLE


KINDS = [App, Blueprint, JobHandle, Queue, Schedules, Task]
SYNC_KINDS = [SyncApp, SyncBulkWrite, SyncJobHandle, SyncQueue, SyncSchedules, SyncTask]


@pytest.mark.parametrize("kind", [*KINDS, *SYNC_KINDS])
def test_p11_public_names_are_documented(kind: type[Any]) -> None:
    own = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    undocumented = [name for name, value in own.items() if callable(value) and not value.__doc__]
    assert undocumented == []

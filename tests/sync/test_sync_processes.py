"""Forks, pools of processes, interrupts and the end of the interpreter: real programs."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace import App, SyncApp
from tests.apps import sync_app
from tests.support.processes import ROOT, WorkerProcess
from tests.support.said import said
from tests.support.threads import blocked_until
from tests.support.until import patience

PROGRAMS = "tests.apps.sync_program"


def copy_of(thing: Any) -> Any:
    """Return what comes out where a thing was sent, as to another process."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 (it is ours)


def run(program: str, url: str, *, is_silent: bool = True) -> list[str]:
    """Run a program to its end, which must be silent, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", PROGRAMS, program],
        cwd=ROOT,
        env={**os.environ, "HEADRACE_URL": url},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert said(done.stderr) == "" or not is_silent
    return done.stdout.split("\n")[:-1]


@pytest.fixture(params=["redis", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty storage that processes share."""
    if request.param == "file":
        return f"file://{tmp_path}/data"
    found: str = request.getfixturevalue("redis_url")
    return found


def stored(url: str) -> list[str]:
    with SyncApp(url, tenant="sync") as app:
        return [job.id for job in app.queue("work").jobs("queued")]


@pytest.mark.parametrize(("program", "before"), [("forks_before_use", 0), ("forks_after_use", 601)])
def test_each_forked_process_enqueues_for_itself(url: str, program: str, before: int) -> None:
    printed = run(program, url)
    assert len(printed) == 5 * 25
    found = stored(url)
    assert len(found) == len(set(found)) == before + 5 * 25
    assert set(printed) <= set(found)


def test_pools_of_processes_use_it(url: str) -> None:
    printed = run("forks_in_a_pool", url)
    assert len(set(printed)) == 2 * 14
    assert set(printed) <= set(stored(url))


def test_memory_is_not_shared_with_a_fork() -> None:
    refusal, queued = run("forks_a_memory", "memory://forked")
    assert "fork" in refusal
    assert "file://" in refusal
    assert queued == "2"


def test_the_interpreter_ends_in_silence(url: str) -> None:
    assert run("ends_in_use", url) == ["done"]
    assert len(stored(url)) == 701


def test_what_an_interrupted_program_was_told_is_stored_once(url: str) -> None:
    # An interrupt may come in a finalizer, and between making a coroutine and its first step.
    printed = run("is_interrupted", url, is_silent=False)
    found = stored(url)
    assert len(found) == len(set(found))
    assert len(printed) == len(set(printed))
    assert set(printed) <= set(found)


def test_it_pickles_as_its_configuration(tmp_path: Path) -> None:
    app = SyncApp(f"file://{tmp_path}", name="shop", tenant="one", retry_for=3, validate=True)
    copied = copy_of(app)
    assert repr(copied) == repr(app)
    assert copied.app.name == "shop"
    app.enqueue("a", queue="q")
    assert copied.queues() == ["q"]
    twin = copy_of(sync_app.bound)
    assert (twin.app.url, twin.app.tenant) == (sync_app.inner.url, "sync")
    for each in (app, copied):
        each.close()


def test_a_task_pickles_by_the_name_of_its_function() -> None:
    assert copy_of(sync_app.double) is sync_app.double
    assert copy_of(sync_app.report) is sync_app.report
    assert copy_of(sync_app.triple) is sync_app.triple
    assert copy_of(sync_app.thrice).task is sync_app.triple

    @SyncApp("memory://local").task(name="local")
    def local() -> None: ...

    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle.dumps(local)


def test_an_app_pickles_with_its_types() -> None:
    app = App("memory://types", encoders={Coin: Coin.value_of}, decoders={Coin: Coin})
    copied = copy_of(app)
    assert copied.codec == app.codec


class Coin:
    """A type of a user's own."""

    def __init__(self, value: int) -> None:
        self.value = value

    def value_of(self) -> int:
        return self.value


def test_a_worker_is_started_with_it(url: str, tmp_path: Path) -> None:
    argv = ("worker", "tests.apps.sync_app:app", "--process-slots", "1")
    env = {"HEADRACE_URL": url}
    with (
        WorkerProcess.module("headrace", *argv, directory=tmp_path, env=env) as worker,
        SyncApp(url, tenant="sync") as app,
    ):
        job = app.enqueue(sync_app.where.name, queue="work")
        assert job.result(timeout=patience(20)) != worker.pid
        job = app.enqueue(sync_app.report.name, queue="work", region="us")
        assert job.result(timeout=patience(20)) == "work: us"
        blocked_until(lambda: [stored.id for stored in app.schedules.list()] == ["weekly"])
        worker.term()
        assert asyncio.run(worker.wait(20)) == 0

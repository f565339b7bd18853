"""Processes of slots are replaced when they are worn, and started again when they can't start."""

from __future__ import annotations

import gc
import importlib
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import anyio
import psutil
import pytest

from headrace.events import ProcessEnded, ProcessFailed
from headrace.outcome import Completed
from headrace.worker.limits import Wear
from headrace.worker.process_slots.functions import Function
from tests.apps import large_import
from tests.apps import process_app as handlers
from tests.support.until import patience, until
from tests.worker.slots import children, claimed, crew_of

MIB = 1 << 20


@pytest.mark.parametrize("jobs", [200, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_jobs_pass_through_processes_that_are_replaced_every_fifty(jobs: int) -> None:
    # RELIABILITY §3 43: the standard library's own recycling hangs on Python 3.11.
    me = psutil.Process()
    async with crew_of(handlers.app, slots=2, wear=Wear(max_jobs=50)) as crew:
        await crew.full()
        before = (me.num_fds(), me.memory_info().rss)
        runs = [await crew.start(claimed(handlers.add, {"a": number})) for number in range(jobs)]
        assert [await run.result() for run in runs] == [b"%d" % (n + 2) for n in range(jobs)]
        ended = crew.log.of(ProcessEnded)
        assert {(event.jobs, event.cause) for event in ended} == {(50, "it ran 50 jobs")}
        assert len(ended) >= jobs // 50 - 2
        await crew.full()
        after = (me.num_fds(), me.memory_info().rss)
        assert after[0] <= before[0] + 1, "two slots at the same stage, but for one socket"
        assert after[1] < before[1] + 30 * MIB


async def test_a_process_that_has_grown_is_replaced_between_two_jobs() -> None:
    async with crew_of(handlers.app, wear=Wear(max_resident_bytes=150 * MIB)) as crew:
        kept = []
        for _ in range(12):
            run = await crew.start(claimed(handlers.keep, {"size": 40 * MIB}))
            kept.append(int(await run.result()))
            await crew.full()
            (process,) = children()
            assert process.memory_info().rss < 200 * MIB
        assert kept.count(1) >= 3, "a new process begins with nothing"
        ended = crew.log.of(ProcessEnded)
        assert len(ended) >= kept.count(1) - 1
        assert all("bytes of memory" in event.cause for event in ended)


async def test_without_a_limit_a_process_is_kept() -> None:
    async with crew_of(handlers.app) as crew:
        pids = {await (await crew.start(claimed(handlers.nap, {"ms": 0}))).result() for _ in "abc"}
        assert len(pids) == 1


# A module that can't be imported

MODULE = """
import multiprocessing
from pathlib import Path

from headrace import App

if multiprocessing.parent_process() is not None and Path({flag!r}).exists():
    raise RuntimeError("no licence here")

app = App("memory://")

@app.task(executor="process")
def work() -> str:
    return "done"
"""


@pytest.fixture
def flag(tmp_path: Path) -> anyio.Path:
    """Return the path of a file that keeps the module from being imported by a child."""
    return anyio.Path(tmp_path / "flag")


@pytest.fixture
def module(
    tmp_path: Path, flag: anyio.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    (tmp_path / "licensed_app.py").write_text(MODULE.format(flag=str(flag)))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("licensed_app")
    del sys.modules["licensed_app"]


async def test_a_module_that_a_child_can_not_import_is_tried_again_until_it_can(
    module: ModuleType, flag: anyio.Path
) -> None:
    await flag.touch()
    async with crew_of(module.app, slots=2) as crew:
        failed = await crew.log.wait(ProcessFailed, 6, within=patience(60))
        assert {event.error for event in failed} == {"RuntimeError: no licence here"}
        assert crew.offers == 0, "no job is claimed for it"
        await flag.unlink()
        await crew.full()
        assert await (await crew.start(claimed(module.work))).result() == b'"done"'
        assert len(crew.log.of(ProcessFailed)) < 30, "the pauses between the tries grow"


async def test_a_job_that_waits_for_a_process_runs_once_there_is_one(
    module: ModuleType, flag: anyio.Path
) -> None:
    async with crew_of(module.app) as crew:
        await crew.full()
        await flag.touch()
        (process,) = children()
        process.kill()
        run = await crew.start(claimed(module.work))
        await crew.log.wait(ProcessFailed, 2, within=patience(60))
        assert not run.outcomes
        await flag.unlink()
        assert await run.result() == b'"done"'


async def test_a_function_that_is_gone_is_said_by_name() -> None:
    functions = {handlers.add.name: Function("tests.apps.process_app", "no_such_function")}
    async with crew_of(handlers.app, functions=functions) as crew:
        failed = await crew.log.wait(ProcessFailed, within=patience(60))
        assert "no_such_function" in failed[0].error


async def test_a_child_that_dies_of_its_imports_says_how(tmp_path: Path) -> None:
    functions = {handlers.add.name: Function("tests.apps.dies_on_import", "add")}
    async with crew_of(handlers.app, functions=functions) as crew:
        failed = await crew.log.wait(ProcessFailed, 2, within=patience(60))
        assert {event.error for event in failed} == {"the process ended with status 7"}


async def test_a_memory_limit_that_leaves_no_room_for_the_imports_is_said() -> None:
    async with crew_of(large_import.app, memory_limit_bytes=128 * MIB) as crew:
        failed = await crew.log.wait(ProcessFailed, 2, within=patience(60))
        assert all("MemoryError" in event.error for event in failed)
        assert crew.offers == 0


def lowest_free_descriptor() -> int:
    """Return the one that is opened next, although some above it may be in use."""
    number = os.dup(0)
    os.close(number)
    return number


async def test_without_room_for_another_socket_the_slot_waits_and_recovers() -> None:
    """RELIABILITY §3 54: no descriptor is left."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with crew_of(handlers.app) as crew:
        await crew.full()
        await until(lambda: len(children()) == 1)
        gc.collect()  # what earlier executors have left would make room
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free_descriptor(), limits[1]))
        try:
            outcome = await crew.run(claimed(handlers.die, {"how": "exit"}))
            assert not isinstance(outcome, Completed)
            failed = await crew.log.wait(ProcessFailed, 2, within=patience(60))
            assert "Too many open files" in failed[0].error
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert await (await crew.start(claimed(handlers.add, {"a": 1}))).result() == b"3"

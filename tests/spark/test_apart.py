"""A function of the pipeline runs in a process of its own, which never outlives who has asked.

That its report comes back is seen where a worker runs it: each start of Spark takes seconds.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest

from headrace.errors import HeadraceError, InvalidOption
from headrace.spark.pipeline.apart import PipelineCall, run_apart
from tests.support.processes import WorkerProcess
from tests.support.until import until

LIMIT_S = 60
ASKS = """
import asyncio, sys, msgspec
from headrace.spark.pipeline.apart import PipelineCall, run_apart
asyncio.run(run_apart(msgspec.json.decode(sys.argv[1], type=PipelineCall)))
"""


def request(root: Path, *, function: str = "rollup", **conf: str) -> PipelineCall:
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    named = {name.replace("_", "."): value for name, value in conf.items()}
    return PipelineCall(function, str(root), {}, "local[1]", {**quick, **named})


def groups_of_java(pid: int) -> set[int]:
    """Return the process groups of all Java that a process has started."""
    groups = set()
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if process.name() == "java":
                    groups.add(os.getpgid(process.pid))
    return groups


async def new_group(pid: int, *, but: Collection[int] = ()) -> int:
    """Wait for the process group of a Java that a process starts now, beside those it has."""
    return min(await until(lambda: groups_of_java(pid) - set(but), within=LIMIT_S))


def members(session: int) -> Iterator[int]:
    """Yield the processes of a session that have not ended."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process.pid


async def test_an_error_comes_back_as_one_of_its_kind(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="'memory' is no setting of Spark"):
        await run_apart(request(tmp_path, memory="lots"))


async def test_any_other_error_is_told_in_a_line(tmp_path: Path) -> None:
    told = r"^no_such_function failed: AttributeError: .* has no attribute 'no_such"
    with pytest.raises(HeadraceError, match=told):
        await run_apart(request(tmp_path, function="no_such_function"))


async def test_a_sudden_end_is_told(tmp_path: Path) -> None:
    known = groups_of_java(os.getpid())

    async def kill() -> None:
        os.kill(await new_group(os.getpid(), but=known), signal.SIGKILL)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill)
        with pytest.raises(HeadraceError, match=r"^rollup ended in the middle: "):
            await run_apart(request(tmp_path))


async def test_what_is_cancelled_is_gone_with_all_that_it_has_started(tmp_path: Path) -> None:
    known = groups_of_java(os.getpid())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_apart, request(tmp_path))
        group = await new_group(os.getpid(), but=known)
        assert group != os.getpgid(0)
        tasks.cancel_scope.cancel()
    await until(lambda: not list(members(group)), within=LIMIT_S)


async def test_it_ends_with_who_has_asked(tmp_path: Path) -> None:
    asked = msgspec.json.encode(request(tmp_path)).decode()
    with WorkerProcess(sys.executable, "-c", ASKS, asked, directory=tmp_path) as asker:
        group = await new_group(asker.pid)
        os.kill(asker.pid, signal.SIGKILL)
        await until(lambda: not list(members(group)), within=LIMIT_S)

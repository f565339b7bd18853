"""A4: what a function returns after it has seen that it should stop is not taken for a result."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from headrace import App, CallNext, Context, JobHandle, JobState, Worker
from headrace.testing import running
from tests.support.processes import ROOT
from tests.support.until import until

MODULE = "primes_of_the_docs"
LONG = 5_000_000
"""Primes up to here take minutes."""


@pytest.fixture
def count_primes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return the example of the documentation, as a module of its own has it."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/tasks.md").read_text(), re.DOTALL)
    [code] = [block for block in blocks if "def count_primes" in block]
    (tmp_path / f"{MODULE}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(MODULE).count_primes.function
    del sys.modules[MODULE]


async def is_put_back(handle: JobHandle[Any]) -> None:
    record = await handle.status()
    assert (record.state, record.result) == (JobState.QUEUED, None)
    assert (record.failures, record.stalls, record.starts) == (0, 0, 1)


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_the_documented_example_goes_back_to_the_queue_at_a_shutdown(
    app: App[None], count_primes: Callable[..., Any], executor: Literal["thread", "process"]
) -> None:
    task = app.task(name="count_primes", executor=executor)(count_primes)

    async def has_looked() -> bool:
        return bool((await handle.status()).progress)

    async with running(Worker(app, process_slots=1, shutdown_timeout=0.1)):
        # What nobody asks to stop is counted to the end.
        assert await task.enqueue_and_wait(limit=30_000) == 3_245
        handle = await task.enqueue(limit=LONG)
        await until(has_looked, within=20, what="it has looked whether it should stop")
    await is_put_back(handle)


async def test_a_function_that_has_not_looked_and_returns_in_time_has_completed(
    app: App[None],
) -> None:
    runners: list[asyncio.Task[Any]] = []
    seen: list[bool] = []
    begun = threading.Event()

    @app.middleware
    async def look(context: Context[Any], call_next: CallNext) -> Any:
        runner = asyncio.current_task()
        assert runner is not None
        runners.append(runner)
        result = await call_next()
        # To look after the function is no matter of its own.
        seen.append(context.cancelled())
        return result

    @app.task
    def work() -> str:
        begun.set()
        while not runners[0].cancelling():
            pass
        return "all of it"

    handle = await work.enqueue()
    async with running(Worker(app, shutdown_timeout=0)):
        await until(begun.is_set, within=10, what="it runs")
    record = await handle.status()
    assert (record.state, record.result) == (JobState.COMPLETED, "all of it")
    assert seen == [True]


async def test_to_middleware_a_function_that_heeds_a_stop_was_cancelled(app: App[None]) -> None:
    begun = threading.Event()
    seen: list[BaseException] = []

    @app.middleware
    async def look(_context: Context[Any], call_next: CallNext) -> Any:
        try:
            return await call_next()
        except BaseException as error:
            seen.append(error)
            raise

    @app.task
    def work(context: Context) -> str:
        begun.set()
        while not context.cancelled():
            pass
        return "a part"

    handle = await work.enqueue()
    async with running(Worker(app, shutdown_timeout=0)):
        await until(begun.is_set, within=10, what="it runs")
    await is_put_back(handle)
    assert [type(error) for error in seen] == [asyncio.CancelledError]

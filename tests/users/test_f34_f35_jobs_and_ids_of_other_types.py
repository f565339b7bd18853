"""F34, F35: what is sent in bulk and what names a job is told what it should be."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from headrace import App, InvalidOption, UsageError
from tests.support.nowhere import unreachable_app


@pytest.fixture
async def app() -> AsyncIterator[App[None]]:
    """Return an app that could send nothing: what is wrong is told before."""
    async with unreachable_app() as app:
        yield app


@pytest.fixture
def send(app: App[None]) -> Any:
    @app.task(name="send")
    async def send(to: str) -> None: ...

    return send


@pytest.mark.parametrize("wrap", [list, tuple, iter, lambda jobs: (job for job in jobs)])
async def test_f34_enqueue_many_of_coroutines_names_job(
    app: App[None], send: Any, wrap: Any
) -> None:
    """F34: and no coroutine is left that was never awaited, as far as they are there."""
    calls = [send.enqueue("a"), send.enqueue("b")]
    if wrap is not list and wrap is not tuple:
        calls.pop().close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(UsageError, match=r"coroutine.* no job.*task\.job\(\.\.\.\)"):
            await app.enqueue_many(wrap(calls))
        del calls
        gc.collect()
    assert not caught


@pytest.mark.parametrize(
    "wrong", [("send", 1), {"to": "a"}, "send", 5, None], ids=lambda value: type(value).__name__
)
async def test_f34_enqueue_many_of_other_things_names_job(
    app: App[None], send: Any, wrong: Any
) -> None:
    """F34: with what was passed."""
    for jobs in ([wrong], [send.job("a"), wrong]):
        with pytest.raises(UsageError, match=r"is no job: pass what task\.job\(\.\.\.\) returns"):
            await app.enqueue_many(jobs)


async def test_f34_enqueue_many_of_tasks_and_of_one_call(app: App[None], send: Any) -> None:
    """F34: a task without a call, a coroutine in place of many, one that has begun."""
    for task in (send, send.options(priority=1)):
        with pytest.raises(UsageError, match=r"no job: pass what task\.job"):
            await app.enqueue_many([task])
    with pytest.raises(UsageError, match=r"can't be iterated: .*task\.job"):
        await app.enqueue_many(send.enqueue("a"))
    begun = asyncio.create_task(asyncio.Event().wait())
    with pytest.raises(UsageError, match=r"no job: pass what task\.job"):
        await app.enqueue_many([begun])  # type: ignore[arg-type]  # that is the test
    begun.cancel()


@pytest.mark.parametrize("value", [UUID(int=5), 5, b"a"], ids=lambda value: type(value).__name__)
async def test_f35_an_id_that_is_no_text_is_told_its_type(
    app: App[None], send: Any, value: Any
) -> None:
    """F35: the most common mistake is a UUID."""
    kind = type(value).__name__
    with pytest.raises(InvalidOption, match=rf"job id .* is of type {kind} and no str: pass str\("):
        send.options(id=value)
    with pytest.raises(InvalidOption, match=rf"job id .* is of type {kind} and no str"):
        app.job(value)
    with pytest.raises(InvalidOption, match=rf"queue .* is of type {kind} and no str"):
        send.options(queue=value)

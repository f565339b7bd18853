"""F30: a lifespan of a wrong shape is refused, with what to write, before any job is claimed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from headrace import App, Context, UsageError, Worker
from headrace.testing import running
from tests.support.project import Project

RIGHT = r"@asynccontextmanager\b.*`async def lifespan\(\)`"


async def without_the_decorator() -> AsyncIterator[None]:
    yield


@contextmanager
def not_async() -> Iterator[None]:
    yield


def without_either() -> Iterator[None]:
    yield


async def only_a_coroutine() -> None: ...


class NoManager:
    pass


@asynccontextmanager
async def of_a_number() -> AsyncIterator[int]:
    yield 5


@asynccontextmanager
async def of_fastapi(api: FastAPI) -> AsyncIterator[FastAPI]:
    yield api


@pytest.mark.parametrize(
    "lifespan",
    [without_the_decorator, not_async, without_either, only_a_coroutine, NoManager, {"db": 1}, 5],
)
def test_f30_what_makes_no_context_manager_is_refused(lifespan: Any) -> None:
    """F30: with the two lines that are right."""
    with pytest.raises(UsageError, match=RIGHT):
        App("memory://f30", lifespan=lifespan)


def test_f30_a_context_manager_itself_is_refused() -> None:
    """F30: each worker makes its own, so the function is passed and not called."""
    made: Any = of_a_number()
    with pytest.raises(UsageError, match="without calling it"):
        App("memory://f30", lifespan=made)


def test_f30_the_lifespan_of_a_web_framework_is_refused() -> None:
    """F30: it takes the web app, which nobody passes here."""
    lifespan: Any = of_fastapi
    with pytest.raises(UsageError, match=r"'api'.*takes no arguments.*lambda: lifespan\(api\)"):
        App("memory://f30", lifespan=lifespan)


@pytest.mark.parametrize("make", [partial(of_fastapi, FastAPI()), lambda: of_fastapi(FastAPI())])
async def test_f30_it_can_be_given_what_it_takes(make: Any) -> None:
    """F30: what the message says works."""
    app = App("memory://f30-given", lifespan=make)

    @app.task(name="see")
    async def see(context: Context) -> str:
        return type(context.state).__name__

    async with app, running(Worker(app)):
        assert await see.enqueue_and_wait() == "FastAPI"


async def test_f30_a_class_is_a_lifespan_if_it_is_a_context_manager() -> None:
    """F30: what makes one is no matter."""

    class Pool:
        async def __aenter__(self) -> str:
            return "open"

        async def __aexit__(self, *error: object) -> None: ...

    app = App("memory://f30-class", lifespan=Pool)

    @app.task(name="see")
    async def see(context: Context[str]) -> str:
        return context.state

    async with app, running(Worker(app)):
        assert await see.enqueue_and_wait() == "open"


@pytest.mark.parametrize("make", [lambda: None, lambda: only_a_coroutine()])
async def test_f30_what_only_a_call_shows_is_refused_when_a_worker_starts(make: Any) -> None:
    """F30: nothing was called when the app was made, and nothing is claimed."""
    app = App("memory://f30-late", lifespan=make)

    @app.task(name="see")
    async def see() -> None: ...

    async with app:
        job = await see.enqueue()
        with pytest.raises(UsageError, match=f"returned .*{RIGHT}"):
            await Worker(app).run()
        assert (await job.status()).starts == 0


def test_f30_a_worker_says_it_in_one_line(tmp_path: Path) -> None:
    """F30: on the command line it is no traceback."""
    source = """
        from headrace import App

        app = App(lifespan=lambda: None)

        @app.task
        async def see() -> None: ...
    """
    done = Project(tmp_path, {"wrong.py": source}).headrace("worker", "wrong:app")
    assert done.returncode == 2
    assert re.search(rf"^Error: .*returned None.*{RIGHT}.*$", done.stderr, re.M)
    assert "Traceback" not in done.stderr

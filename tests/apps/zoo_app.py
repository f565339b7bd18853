"""Handlers of every kind that raise, return and wait for what lives in the zoo."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from headrace import App, CallNext, Context
from tests.apps.zoo import EXCEPTIONS, RESULTS, RETRIES, Fussy, Strategy
from tests.support.adopt import adopt_task

QUEUE = "zoo"


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    """Raise what the environment names."""
    if "ZOO_LIFESPAN" in os.environ:
        raise EXCEPTIONS[os.environ["ZOO_LIFESPAN"]]()
    yield


if "ZOO_IMPORT" in os.environ:
    raise EXCEPTIONS[os.environ["ZOO_IMPORT"]]()

app: App[None] = App(lifespan=lifespan)


@app.middleware
async def bite(context: Context[Any], call_next: CallNext) -> Any:
    """Raise what a header names, before or after the handler."""
    if "before" in context.headers:
        raise EXCEPTIONS[context.headers["before"]]()
    result = await call_next()
    if "after" in context.headers:
        raise EXCEPTIONS[context.headers["after"]]()
    if "instead" in context.headers:
        return RESULTS[context.headers["instead"]]()
    return result


@app.task(name="raise_in_loop", queue=QUEUE, max_attempts=1)
async def raise_in_loop(animal: str) -> None:
    raise EXCEPTIONS[animal]()


@app.task(name="raise_in_thread", queue=QUEUE, max_attempts=1)
def raise_in_thread(animal: str) -> None:
    raise EXCEPTIONS[animal]()


@app.task(name="raise_in_process", queue=QUEUE, max_attempts=1, executor="process")
def raise_in_process(animal: str) -> None:
    raise EXCEPTIONS[animal]()


@app.task(name="return_in_loop", queue=QUEUE)
async def return_in_loop(animal: str) -> Any:
    return RESULTS[animal]()


@app.task(name="return_in_thread", queue=QUEUE)
def return_in_thread(animal: str) -> Any:
    return RESULTS[animal]()


@app.task(name="return_in_process", queue=QUEUE, executor="process")
def return_in_process(animal: str) -> Any:
    return RESULTS[animal]()


@app.task(name="take_in_loop", queue=QUEUE)
async def take_in_loop(animal: Fussy) -> None: ...


@app.task(name="take_in_thread", queue=QUEUE)
def take_in_thread(animal: Fussy) -> None: ...


@app.task(name="take_in_process", queue=QUEUE, executor="process")
def take_in_process(animal: Fussy) -> None: ...


@app.task(name="well_in_loop", queue=QUEUE)
async def well_in_loop() -> str:
    return "well"


@app.task(name="well_in_thread", queue=QUEUE)
def well_in_thread() -> str:
    return "well"


@app.task(name="well_in_process", queue=QUEUE, executor="process")
def well_in_process() -> str:
    return "well"


@app.task(name="wait_in_thread", queue=QUEUE, max_stalls=1)
def wait_in_thread(begun: str, go: str) -> str:
    Path(begun).touch()
    while not Path(go).exists():
        time.sleep(0.01)
    return "waited"


async def fail_in_loop() -> None:
    raise ValueError("no")


def fail_in_thread() -> None:
    raise ValueError("no")


def fail_in_process() -> None:
    raise ValueError("no")


def _add_failing(function: Callable[[], Any], executor: Literal["process"] | None) -> None:
    for name in RETRIES:
        app.task(
            name=f"{function.__name__}:{name}",
            queue=QUEUE,
            max_attempts=3,
            retry=Strategy(name),
            executor=executor,
        )(function)


_add_failing(fail_in_loop, None)
_add_failing(fail_in_thread, None)
_add_failing(fail_in_process, "process")


def adopt(other: App[Any]) -> None:
    """Give another app these tasks and their middleware."""
    for task in app.tasks.values():
        adopt_task(other, task)
    other.middleware(bite)

"""Every shape of handler, with and without a lifespan, for type checkers only: see `calls`.

Whatever its state is annotated as, a `Context` comes first and is no part of a call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, assert_type

from headrace import App, Blueprint, Context, JobHandle


class State:
    """What a lifespan yields."""


class Other:
    """What none yields."""


@asynccontextmanager
async def lifespan() -> AsyncGenerator[State, None]:
    """Yield the state of a worker."""
    yield State()


app = App(lifespan=lifespan)
plain = App()


@app.task
async def coroutine_bare(context: Context, n: int) -> str:
    """With a lifespan, a coroutine."""
    return context.job_id * n


@app.task
async def coroutine_none(context: Context[None], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task
async def coroutine_state(context: Context[State], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task
async def coroutine_any(context: Context[Any], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task
async def coroutine_object(context: Context[object], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task
def thread_bare(context: Context, n: int) -> str:
    """With a lifespan, a plain function."""
    return context.job_id * n


@app.task(executor="thread")
def thread_none(context: Context[None], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task(executor="thread")
def thread_state(context: Context[State], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task
def thread_any(context: Context[Any], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task
def thread_object(context: Context[object], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task(executor="process")
def process_bare(context: Context, n: int) -> str:
    """With a lifespan, for a process."""
    return context.job_id * n


@app.task(executor="process")
def process_any(context: Context[Any], n: int) -> str:
    """The same."""
    return context.job_id * n


@app.task(executor="process")
def process_state(context: Context[State], n: int) -> str:
    """The same."""
    return context.job_id * n


@plain.task
async def stateless_coroutine(context: Context, n: int) -> str:
    """Without a lifespan, a coroutine."""
    return context.job_id * n


@plain.task(queue="q")
async def stateless_coroutine_any(context: Context[Any], n: int) -> str:
    """The same."""
    return context.job_id * n


@plain.task
async def stateless_coroutine_object(context: Context[object], n: int) -> str:
    """The same."""
    return context.job_id * n


@plain.task
def stateless_thread(context: Context[None], n: int) -> str:
    """Without a lifespan, a plain function."""
    return context.job_id * n


@plain.task(executor="process")
def stateless_process(context: Context[object], n: int) -> str:
    """Without a lifespan, for a process."""
    return context.job_id * n


@app.task
async def coroutine_of_data(data: dict[str, Any]) -> list[Any]:
    """An `Any` among its arguments."""
    return [*data]


@app.task
async def coroutine_with_data(context: Context[State], /, data: dict[str, Any]) -> str:
    """A context before it."""
    return context.job_id * len(data)


@app.task
def thread_with_data(context: Context, /, data: dict[str, Any]) -> list[Any]:
    """The same."""
    return [context.job_id, *data]


@app.task
async def named_with_data(context: Context, data: dict[str, Any]) -> str:
    """Its context could be passed by name."""
    return context.job_id * len(data)


mail = Blueprint()
typed: Blueprint[State] = Blueprint()


@mail.task
async def in_a_blueprint(context: Context[State], n: int) -> str:
    """Whatever the state of the app will be."""
    return context.job_id * n


@mail.task(priority=1)
def bare_in_a_blueprint(context: Context, n: int) -> str:
    """The same."""
    return context.job_id * n


@typed.task
async def lies_in_a_blueprint(context: Context[Other], n: int) -> str:
    """Its blueprint is for apps of another state."""
    return context.job_id * n


@app.task
async def lies(context: Context[Other], n: int) -> str:
    """Its lifespan yields nothing of that type, so that every call is a mistake."""
    return context.job_id * n


async def with_a_lifespan() -> None:
    """A call has the other arguments only."""
    assert_type(await coroutine_bare.enqueue(1), JobHandle[str])
    assert_type(await coroutine_none.enqueue(1), JobHandle[str])
    assert_type(await coroutine_state.enqueue(1), JobHandle[str])
    assert_type(await coroutine_object.enqueue(1), JobHandle[str])
    assert_type(await thread_bare.enqueue(1), JobHandle[str])
    assert_type(await thread_none.enqueue(n=1), JobHandle[str])
    assert_type(await thread_state.enqueue(n=1), JobHandle[str])
    assert_type(await thread_object.enqueue(1), JobHandle[str])
    assert_type(await process_bare.enqueue(1), JobHandle[str])
    assert_type(await process_state.options(priority=1).enqueue(1), JobHandle[str])
    await coroutine_bare.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await thread_object.enqueue(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await process_bare.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(await in_a_blueprint.enqueue(1), JobHandle[str])
    assert_type(bare_in_a_blueprint(1), str)
    await in_a_blueprint.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await lies_in_a_blueprint.enqueue(1)  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]
    await lies.enqueue(1)  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]


async def without_a_lifespan() -> None:
    """The same."""
    assert_type(await stateless_coroutine.enqueue(1), JobHandle[str])
    assert_type(await stateless_coroutine_object.enqueue(1), JobHandle[str])
    assert_type(await stateless_thread.enqueue(1), JobHandle[str])
    assert_type(await stateless_process.enqueue(1), JobHandle[str])
    await stateless_thread.enqueue(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def called() -> None:
    """A task that is called is its function: a plain one returns, now, and the other is awaited."""
    waiting: Coroutine[Any, Any, str] = coroutine_bare(1)
    assert_type(await waiting, str)
    assert_type(await stateless_coroutine(1), str)
    assert_type(thread_bare(1), str)
    assert_type(stateless_thread(n=1), str)
    thread_bare("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def with_any() -> None:
    """An `Any` in the arguments or the result takes no type away."""
    assert_type(await coroutine_of_data.enqueue({}), JobHandle[list[Any]])
    assert_type(await coroutine_with_data.enqueue({}), JobHandle[str])
    assert_type(await thread_with_data.enqueue(data={}), JobHandle[list[Any]])
    await coroutine_of_data.enqueue(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await coroutine_with_data.enqueue(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await thread_with_data.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def not_checked_by_mypy() -> None:
    """With an `Any` and a context that has a name, mypy can't tell which overload is meant.

    It finds no mistake then, also none in what is right. A ``/`` behind the context helps.
    """
    await named_with_data.enqueue({})
    await coroutine_any.enqueue(1)
    await thread_any.enqueue(n=1)
    await process_any.enqueue_and_wait(1)
    await stateless_coroutine_any.enqueue(1)
    await named_with_data.enqueue(1)  # pyright: ignore[reportArgumentType]
    await coroutine_any.enqueue("1")  # pyright: ignore[reportArgumentType]
    await stateless_coroutine_any.enqueue("1")  # pyright: ignore[reportArgumentType]

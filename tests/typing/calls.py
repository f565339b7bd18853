"""Call sites as users write them, for type checkers only: what is right, what must be an error.

Nobody runs this. An error that is expected is ignored on its line, for each checker by its own
rule, and an ignore that ignores nothing is an error itself: so both must find every mistake.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, assert_type

import msgspec

from headrace import (
    App,
    CallNext,
    CancelOutcome,
    Context,
    EnqueueOutcome,
    Job,
    JobHandle,
    JobStatus,
    Retry,
    Task,
    TaskRef,
    WaitTimeout,
    Worker,
)
from headrace.registry import TaskDecorator


class State:
    """What a lifespan yields."""

    pool: int = 0


class Receipt(msgspec.Struct):
    """A handler's result."""

    number: int


@asynccontextmanager
async def lifespan() -> AsyncGenerator[State, None]:
    """Yield the state of a worker."""
    yield State()


app = App(lifespan=lifespan)
plain = App("redis://localhost")

own = {Receipt: str}
App(encoders=own, decoders={Receipt: int}, validate=True)
App(encoders={Receipt: 5})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]

assert_type(app, App[State])
assert_type(plain, App[None])


@plain.task
async def add(left: int, right: int = 2) -> int:
    """Declared without arguments."""
    return left + right


@plain.task(queue="emails", max_attempts=5, timeout=timedelta(seconds=30), retry=Retry(min=1))
async def send(to: str, *, template: str) -> Receipt:
    """Declared with arguments."""
    return Receipt(len(to + template))


@app.task
async def look(context: Context[State], number: int) -> int:
    """Takes a context, which is no part of the call."""
    assert_type(context.state, State)
    assert_type(context.start, int)
    return context.state.pool + number


@app.task(priority=9)
async def glance(context: Context[State], /, *, name: str) -> None:
    """Takes a context, declared with arguments."""
    assert_type(context.state.pool, int)
    assert_type(name, str)


@app.task
async def alone(context: Context[State]) -> str:
    """Takes nothing but a context."""
    return context.job_id


@plain.task
async def anything(value: object, more: int = 0) -> list[str]:
    """Its first parameter takes anything, but is no context."""
    return [repr(value)] * more


@plain.task
def plain_add(left: int, right: int = 2) -> int:
    """A plain function, declared without arguments."""
    return left + right


@plain.task(queue="cpu", executor="process", timeout=5)
def crunch(data: list[float], *, power: int) -> Receipt:
    """A plain function for a process slot."""
    return Receipt(len(data) * power)


@app.task
def plain_look(context: Context[State], number: int) -> str:
    """A plain function that takes a context."""
    assert_type(context.state, State)
    assert_type(context.cancelled(), bool)
    context.progress(0.5, "half")
    context.emit({"number": number})
    return context.job_id


@app.task(executor="thread")
def plain_glance(context: Context[State], /, *, name: str) -> None:
    """A plain function that takes a context, declared with arguments."""
    assert_type(name, str)
    context.progress(1)


@plain.task
def plain_anything(value: object, more: int = 0) -> list[str]:
    """A plain function whose first parameter takes anything."""
    return [repr(value)] * more


@plain.task(queue="any")
def plain_something(value: object) -> int:
    """The same, declared with arguments."""
    return len(repr(value))


async def plain_functions() -> None:
    """A plain function is called like a coroutine, and its results have its types."""
    await plain_add.enqueue(1)
    await plain_add.enqueue(1, right=3)
    await plain_add.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await plain_add.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(await plain_add.enqueue(1), JobHandle[int])
    assert_type(plain_add(1), int)
    assert_type(await (await plain_add.enqueue(1)).result(), int)

    await crunch.enqueue([1.0], power=2)
    await crunch.enqueue([1.0])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await crunch.enqueue(["1"], power=2)  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    assert_type(await crunch.enqueue_and_wait([1.0], power=2), Receipt)
    assert_type(await crunch.options(priority=9).enqueue([1.0], power=2), JobHandle[Receipt])
    assert_type(crunch.job([1.0], power=2), Job[Receipt])

    await plain_look.enqueue(1)
    await plain_look.enqueue(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(await plain_look.enqueue_and_wait(number=1), str)
    await plain_glance.enqueue(name="n")
    await plain_glance.enqueue(name=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(await plain_glance.enqueue_and_wait(name="n"), None)

    await plain_anything.enqueue(5)
    await plain_anything.enqueue("x", more=2)
    await plain_anything.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(await plain_anything.enqueue_and_wait(5), list[str])
    await plain_something.enqueue(5)
    await plain_something.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(await plain_something.enqueue_and_wait(5), int)
    async for piece in (await crunch.enqueue([1.0], power=2)).stream():
        assert_type(piece, Any)


async def arguments() -> None:
    """Arguments are held against the handler's signature wherever it is called."""
    await add.enqueue(1)
    await add.enqueue(1, right=3)
    await add.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await add.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await add.enqueue(1, 2, 3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await add.enqueue(1, wrong=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    await send.enqueue("a@b.c", template="welcome")
    await send.enqueue("a@b.c")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await send.enqueue("a", "b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await send.enqueue(5, template="")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    add.job(1)
    add.job("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.job(1, 2, 3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    later = add.options(delay=5, id="x", headers={"trace": "1"})
    await later.enqueue(1)
    await later.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    later.job(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    await add.enqueue_and_wait(1, right=2)
    await add.enqueue_and_wait(b"1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await later.enqueue_and_wait()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    await add(1)
    await add("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def contexts() -> None:
    """A context is the worker's to give."""
    await look.enqueue(1)
    await look.enqueue(number=1)
    await look.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await look.enqueue(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await glance.enqueue(name="n")
    await glance.options(priority=1).enqueue(name="n")
    await glance.enqueue(name=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await alone.enqueue()
    await alone.enqueue(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def first_parameters_of_any_type() -> None:
    """They stay a part of the call."""
    await anything.enqueue(5)
    await anything.enqueue("x", more=2)
    await anything.enqueue("x", "y")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await anything.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def results() -> None:
    """A handler's type is the type of what comes back."""
    handle = await add.enqueue(1)
    assert_type(handle, JobHandle[int])
    assert_type(await handle.result(), int)
    assert_type(await handle.result(timeout=5), int)
    assert_type(handle.id, str)
    assert_type(handle.outcome, EnqueueOutcome)
    assert_type(await handle.status(), JobStatus)
    assert_type(app.job("x", task=add), JobHandle[int])
    assert_type(app.job("x", queue="q", task=send), JobHandle[Receipt])
    assert_type(app.job("x", task="add"), JobHandle[Any])
    assert_type(await app.find("x", task=send), JobHandle[Receipt])
    assert_type(await app.find("x"), JobHandle[Any])
    assert_type(await handle.cancel(), CancelOutcome)
    assert_type(await add.enqueue_and_wait(1), int)
    assert_type(await add.options(priority=1).enqueue(1), JobHandle[int])
    assert_type(await add.options(priority=1).enqueue_and_wait(1), int)
    assert_type(await (await send.enqueue("a", template="b")).result(), Receipt)
    assert_type(await (await look.enqueue(1)).result(), int)
    assert_type(await (await glance.enqueue(name="n")).result(), None)
    assert_type(await add(1), int)
    assert_type(add.job(1), Job[int])
    assert_type(await app.enqueue_many([add.job(1)]), list[JobHandle[int]])
    assert_type(
        await app.enqueue_many(send.job(t, template="b") for t in "ab"), list[JobHandle[Receipt]]
    )
    mixed: list[Job[int | Receipt]] = [add.job(1), send.job("a", template="b")]
    assert_type(await app.enqueue_many(mixed), list[JobHandle[int | Receipt]])
    assert_type(await plain.enqueue_many(add.job(n) for n in range(3)), list[JobHandle[int]])
    assert_type(await plain.enqueue("by name", 1, x=2), JobHandle[Any])
    assert_type(plain.job("id"), JobHandle[Any])
    text: str = await handle.result()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    del text


async def by_name() -> None:
    """A task that is a name here takes what it is given, and its results have no type."""
    ref = plain.task_ref("shop.send", queue="emails")
    assert_type(ref, TaskRef)
    assert_type(await ref.enqueue(to="a", queue=1), JobHandle[Any])
    assert_type(await ref.options(delay=5).enqueue(to="a"), JobHandle[Any])
    assert_type(ref.job(to="a"), Job[Any])
    ref.options(delay="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ref.delay(1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


async def waits() -> None:
    """A wait is bounded by an option, and what is over has the job's handle."""
    assert_type(await add.options(wait_timeout=5).enqueue_and_wait(1), int)
    assert_type(await add.options(wait_timeout=timedelta(seconds=5)).enqueue_and_wait(1), int)
    add.options(wait_timeout="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    try:
        await add.enqueue_and_wait(1)
    except WaitTimeout as error:
        assert_type(error.is_served, bool | None)
        assert_type(error.job_id, str)


def words_of_others() -> None:
    """What only other libraries have is an error for type checkers too."""
    add.delay(1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    add.options(countdown=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    plain.task(max_retries=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    emails = plain.task(queue="emails")
    assert_type(emails(priority=9), TaskDecorator[None])


def declarations() -> None:
    """Options and handlers of wrong types are refused where a task is declared."""
    add.options(priority="high")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.options(delay="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.options(run_at=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.options(color="red")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.options(headers={"a": 1})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    plain.task(executor="gpu")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    Worker(plain, concurrency="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Worker(add)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def takes_a_task(task: Task[[int, int], int]) -> None:
    """A task's type can be written down."""
    del task


@plain.middleware
async def timed(context: Context[Any], call_next: CallNext) -> Any:
    """Middleware has a type of its own."""
    assert_type(context.task, str)
    return await call_next()

"""What type checkers say of code without an event loop; each mistake in it is marked as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, assert_type

from headrace import (
    App,
    CancelOutcome,
    Context,
    Job,
    JobStatus,
    Scheduler,
    SyncApp,
    SyncJobHandle,
    SyncTask,
    SyncTaskCall,
    SyncTaskRef,
    Worker,
)
from headrace.testing import Kit


@dataclass
class Receipt:
    """What sending returns."""

    number: int


@dataclass
class State:
    """What the lifespan yields."""

    number: int


@asynccontextmanager
async def lifespan() -> AsyncGenerator[State, None]:
    """Yield the state."""
    yield State(1)


plain = SyncApp("memory://typing")
app = SyncApp("memory://typing", lifespan=lifespan)
inner: App[None] = App("memory://typing")
over = SyncApp(inner)
assert_type(plain, SyncApp[None])
assert_type(app, SyncApp[State])
assert_type(over, SyncApp[None])
assert_type(app.app, App[State])
SyncApp(inner, tenant="x")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
SyncApp(colour="red")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
Worker(app)
Scheduler(plain)
Kit(app)


@plain.task
def add(left: int, right: int = 0) -> int:
    """A plain function."""
    return left + right


@plain.task(queue="emails", max_attempts=5)
async def send(to: str, *, template: str) -> Receipt:
    """A coroutine function."""
    return Receipt(len(to + template))


@app.task
async def look(context: Context[State], number: int) -> str:
    """A function that takes a context."""
    return str(context.state.number + number)


@plain.cron("0 9 * * 1")
@plain.task
def daily(region: str = "eu") -> str:
    """A function of which a schedule was declared."""
    return region


@app.task(queue="any")
def anything(value: object) -> list[str]:
    """A function whose first parameter takes anything."""
    return [repr(value)]


@plain.every(5)
def pulse() -> None:
    """A function that a schedule makes a task."""


@inner.task
async def triple(number: int) -> int:
    """A task of the async app."""
    return 3 * number


def arguments() -> None:
    """Arguments are held against the handler's signature wherever it is called."""
    add.enqueue(1)
    add.enqueue(1, right=3)
    add.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.enqueue(1, wrong=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    send.enqueue("a@b.c", template="welcome")
    send.enqueue("a@b.c")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    send.enqueue_and_wait("a", "b")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.options(delay=5).enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.options(delay="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    add.options(colour="red")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    add.job(1, 2, 3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    look.enqueue(1)
    look.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    anything.enqueue(5)
    anything.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    pulse.enqueue()
    add.delay(1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def results() -> None:
    """A handler's type is the type of what comes back."""
    handle = add.enqueue(1)
    assert_type(handle, SyncJobHandle[int])
    assert_type(handle.result(), int)
    assert_type(handle.result(timeout=5), int)
    assert_type(handle.status(), JobStatus)
    assert_type(handle.cancel(), CancelOutcome)
    assert_type(add.options(priority=1), SyncTaskCall[[int, int], int])  # type: ignore[assert-type]  # pyright: ignore[reportAssertTypeFailure]
    assert_type(add.options(priority=1).enqueue(1), SyncJobHandle[int])
    assert_type(add.options(priority=1).enqueue_and_wait(1), int)
    assert_type(send.enqueue_and_wait("a", template="b"), Receipt)
    assert_type(look.enqueue(1).result(), str)
    assert_type(anything.enqueue(5).result(), list[str])
    assert_type(add(1), int)
    assert_type(asyncio.run(send("a", template="b")), Receipt)
    assert_type(daily.enqueue("us").result(), str)
    assert_type(add.job(1), Job[int])
    assert_type(plain.submit(add.job(1)), SyncJobHandle[int])
    assert_type(plain.enqueue_many(add.job(n) for n in range(3)), list[SyncJobHandle[int]])
    assert_type(plain.job("x", task=add), SyncJobHandle[int])
    assert_type(plain.job("x"), SyncJobHandle[Any])
    assert_type(plain.find("x", task=send), SyncJobHandle[Receipt])
    assert_type(over.job("x", task=triple), SyncJobHandle[int])
    for piece in handle.stream():
        assert_type(piece, Any)
    text: str = handle.result()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    del text


def by_name() -> None:
    """A task that is a name here takes what it is given; one of the async app keeps its types."""
    assert_type(plain.task_ref("shop.send", queue="q"), SyncTaskRef)
    assert_type(plain.enqueue("shop.send", 1, queue="q"), SyncJobHandle[Any])
    bound = over.bind(triple)
    assert_type(bound.enqueue(1), SyncJobHandle[int])
    bound.enqueue("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def takes_a_task(task: SyncTask[[int, int], int]) -> None:
    """A task's type can be written down."""
    assert_type(task.enqueue(1, 2), SyncJobHandle[int])

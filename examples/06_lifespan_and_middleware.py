"""What handlers share: resources opened once a worker, and code around every attempt."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio

from headrace import App, CallNext, Context, Worker, current_job


@dataclass
class State:
    """Stands for a connection pool, an HTTP client, a model."""

    stock: dict[str, int]


@asynccontextmanager
async def lifespan() -> AsyncIterator[State]:
    """Open before the worker's first job, close after its last."""
    print("open")
    yield State({"apples": 3})
    print("close")


URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else None  # else HEADRACE_URL
app = App(URL, tenant="examples", lifespan=lifespan)


@app.middleware
async def trace(context: Context[State], call_next: CallNext) -> Any:
    """Run around every handler, as for logging, metrics and transactions."""
    print(f"{context.task} for {context.headers['user']}, start {current_job().start}")
    return await call_next()


@app.task(name="take", queue="stock")
async def take(context: Context[State], kind: str, count: int) -> int:
    """Get the state with its type; the context is no argument of the call."""
    context.state.stock[kind] -= count
    return context.state.stock[kind]


async def main() -> None:
    """Run one job."""
    worker = Worker(app)
    async with app, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        call = take.options(headers={"user": "ada"})
        print("left:", await call.enqueue_and_wait("apples", 2))
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

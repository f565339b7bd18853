"""A process of many producers: each enqueues once with the same key, when its parent says so.

Run as ``python -m tests.apps.keyed_producer URL COUNT NAME``. It says that it is ready, waits for a
line, and writes the outcome and the id that each producer was given.
"""

from __future__ import annotations

import asyncio
import sys

from headrace import App


async def produce(url: str, count: int, name: str) -> None:
    """Enqueue at once, each by a client of its own."""
    apps = [App(url, tenant="keyed") for _ in range(count)]
    for app in apps:
        await app.connect()
    print("ready", flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.readline)

    async def send(app: App[None], number: int) -> str:
        task = app.task_ref("charge", queue="money")
        job = await task.options(id=f"{name}-{number}", idempotency_key="order 7").enqueue()
        return f"{job.outcome} {job.id}"

    told = await asyncio.gather(*(send(app, number) for number, app in enumerate(apps)))
    print("\n".join(told), flush=True)  # noqa: T201
    for app in apps:
        await app.aclose()


if __name__ == "__main__":
    asyncio.run(produce(sys.argv[1], int(sys.argv[2]), sys.argv[3]))

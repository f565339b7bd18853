"""A process of many producers of one throttled task, which call it when their parent says so.

Run as ``python -m tests.apps.throttled_producer URL COUNT NAME``. It says that it is ready, waits
for a line, and writes the outcome and the id of the handle that each producer was given.
"""

from __future__ import annotations

import asyncio
import sys

from headrace import App, Task


def throttled(url: str) -> tuple[App[None], Task[[str], str]]:
    """Return an app of its own, and its task."""
    app = App(url, tenant="throttled")

    @app.task(name="refresh", queue="pages", throttle=600)
    async def refresh(by: str) -> str:
        return by

    return app, refresh


async def produce(url: str, count: int, name: str) -> None:
    """Call it at once, each by a client of its own."""
    pairs = [throttled(url) for _ in range(count)]
    for app, _ in pairs:
        await app.connect()
    print("ready", flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.readline)
    calls = (task.enqueue(f"{name}-{number}") for number, (_, task) in enumerate(pairs))
    told = [f"{job.outcome} {job.id}" for job in await asyncio.gather(*calls)]
    print("\n".join(told), flush=True)  # noqa: T201
    for app, _ in pairs:
        await app.aclose()


if __name__ == "__main__":
    asyncio.run(produce(sys.argv[1], int(sys.argv[2]), sys.argv[3]))

"""A process on an embedded storage, for the tests that need several on one directory.

Run as ``python -m tests.apps.embedded_app URL worker`` to run jobs, or with ``producer`` to enqueue
until it is killed; each id is printed once it is stored.
"""

from __future__ import annotations

import asyncio
import os
import sys

from headrace import App, Worker

QUEUE = "shared"


def make_app(url: str) -> App[None]:
    """Return an app with a task that names the process that ran it."""
    app: App[None] = App(url)

    @app.task(name="pid", queue=QUEUE)
    async def pid() -> int:
        return os.getpid()

    @app.task(name="hold", queue=QUEUE)
    async def hold() -> None:
        await asyncio.sleep(3600)

    return app


async def produce(app: App[None]) -> None:
    """Enqueue for ever."""
    async with app:
        while True:
            handles = await app.enqueue_many(app.tasks["pid"].job() for _ in range(20))
            sys.stdout.write("".join(f"{handle.id}\n" for handle in handles))
            sys.stdout.flush()


def main() -> None:
    """Run one process."""
    app = make_app(sys.argv[1])
    if sys.argv[2] == "producer":
        asyncio.run(produce(app))
    else:
        asyncio.run(Worker(app, lease=1.0, sweep_interval=0.2).run())


if __name__ == "__main__":
    main()

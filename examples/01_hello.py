"""One task, one job, and a worker in the same process.

    python examples/01_hello.py --url redis://localhost:6379

Usually the worker is a process of its own: ``headrace worker my_module:app``.
"""

import asyncio
import sys

import anyio

from headrace import App, Worker

URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else None  # else HEADRACE_URL
app = App(URL, tenant="examples")


@app.task(queue="hello")
async def greet(name: str) -> str:
    """Run in the worker, some time after it was enqueued."""
    return f"hello, {name}"


async def main() -> None:
    """Enqueue, let a worker run it, and wait for the result."""
    worker = Worker(app)
    async with app, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        job = await greet.enqueue("Ada")
        print(f"enqueued job {job.id}")
        print(await job.result(timeout=10))
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

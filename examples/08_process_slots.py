"""Work that keeps a processor busy runs in processes: they can be stopped, and may even die.

A process finds a function by its module and name, so define it at the top level of a module.
"""

import asyncio
import os
import sys

import anyio

from headrace import App, Context, JobFailed, Worker

URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else "memory://"  # or a server, as usual
app = App(URL, tenant="examples")


@app.task(queue="numbers", executor="process")
def primes(context: Context, below: int) -> int:
    """Count the primes; look now and then whether anybody still wants to know."""
    found: list[int] = []
    for number in range(2, below):
        if all(number % prime for prime in found):
            found.append(number)
            context.progress(number / below, f"{len(found)} primes")
        if context.cancelled():
            break
    return len(found)


@app.task(queue="numbers", executor="process", timeout=0.5, max_attempts=1)
def hang() -> None:
    """Be ended by force, since nothing else helps."""
    while True:
        pass


@app.task(queue="numbers", executor="process", max_stalls=1)
def crash() -> None:
    """Take the process along; jobs in other slots notice nothing."""
    os.abort()


async def main() -> None:
    """Keep two processes busy."""
    worker = Worker(app, process_slots=2, emit=lambda event: None)
    async with app, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        jobs = [await primes.enqueue(below) for below in (10, 100, 1_000)]
        for task in (hang, crash):
            try:
                await task.enqueue_and_wait()
            except JobFailed as error:
                print(f"{error.reason}: {error.error_message}")
        print("primes:", *[await job.result(timeout=30) for job in jobs])
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

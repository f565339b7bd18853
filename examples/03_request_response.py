"""Jobs as requests: wait for the result, give up in time, and get it back with its type."""

import asyncio
import sys
from dataclasses import dataclass

import anyio

from headrace import App, JobFailed, WaitTimeout, Worker

URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else None  # else HEADRACE_URL
app = App(URL, tenant="examples")


@dataclass
class Invoice:
    """Dataclasses, msgspec structs and plain data go in and come out as themselves."""

    number: int
    total: float


@app.task(queue="invoices")
async def bill(customer: str, amounts: list[float]) -> Invoice:
    """Return a typed result."""
    return Invoice(number=len(customer), total=sum(amounts))


@app.task(queue="invoices", timeout=0.1, max_attempts=1)
async def hang() -> None:
    """Take longer than an attempt may."""
    await asyncio.Event().wait()


async def main() -> None:
    """Ask in three ways."""
    worker = Worker(app, emit=lambda event: None)  # the default would log the failure
    async with app, anyio.create_task_group() as group:
        job = await bill.enqueue("ada", [10.0, 2.5])
        try:
            await job.result(timeout=0.1)  # nobody runs jobs yet
        except WaitTimeout as error:
            print("not yet:", (await job.status()).state, "- served:", error.is_served)

        group.start_soon(worker.run)
        print("later:", await job.result(timeout=10))

        invoice = await bill.options(wait_timeout=10).enqueue_and_wait("grace", [1.0])
        print("at once:", invoice.number, invoice.total)

        try:
            await hang.enqueue_and_wait()
        except JobFailed as error:
            print(f"failed: {error.reason}, {error.error_type}: {error.error_message}")
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

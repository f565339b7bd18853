"""What one call can ask for: an id of its own, a time, a tier, a deadline, headers."""

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta

import anyio

from headrace import App, Context, JobFailed, Worker

URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else None  # else HEADRACE_URL
app = App(URL, tenant="examples")
ran: list[str] = []


@app.task(queue="reports")
async def report(context: Context, name: str) -> str:
    """Note in which order jobs ran."""
    ran.append(name)
    return f"{name} for {context.headers.get('user', 'nobody')}"


async def main() -> None:
    """Enqueue while no worker runs, so that the order is plain to see."""
    worker = Worker(app, concurrency=1)
    async with app, anyio.create_task_group() as group:
        # One id is one job while an earlier one waits, runs, or is kept completed.
        daily = report.options(id=f"daily:{time.time_ns()}", headers={"user": "ada"})
        first = await daily.enqueue("daily")
        print("first:", first.outcome, "- again:", (await daily.enqueue("daily")).outcome)

        # Higher tiers run first; 5 is the default.
        urgent = await report.options(priority=9).enqueue("urgent")

        in_an_hour = datetime.now(UTC) + timedelta(hours=1)
        tomorrow = await report.options(run_at=in_an_hour).enqueue("tomorrow")
        print("scheduled:", tomorrow.outcome, "- cancelled:", await tomorrow.cancel())

        hasty = await report.options(expires=0.001).enqueue("hasty")
        soon = await report.options(delay=timedelta(milliseconds=200)).enqueue("soon")
        await asyncio.sleep(0.01)

        group.start_soon(worker.run)
        print("result:", await first.result(timeout=10))
        print("result:", await urgent.result(timeout=10))
        try:
            await hasty.result(timeout=10)
        except JobFailed as error:
            print("hasty:", error.reason)
        print("result:", await soon.result(timeout=10))
        print("order:", ", ".join(ran))
        again = await daily.enqueue("daily")
        print("once more:", again.outcome, "-", await again.result())
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

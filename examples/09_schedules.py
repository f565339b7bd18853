"""Schedules: declared in code, or stored and steered while the program runs. Workers fire them."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import anyio

from headrace import App, At, Cron, Worker

URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else "memory://"  # or a server, as usual
app = App(URL, tenant="examples")
beats = asyncio.Semaphore(0)
reported = asyncio.Event()


@app.every(0.2, id="pulse")
@app.task(queue="pulse")
async def beat() -> None:
    """Come five times a second, with one worker or with ten."""
    beats.release()


@app.cron("0 9 * * 1", tz="America/New_York", id="report-us", args={"region": "us"})
@app.task(queue="reports")
async def report(region: str) -> str:
    """Come every Monday, and whenever somebody asks for it."""
    if region == "all":
        reported.set()
    return f"report for {region}"


async def main() -> None:
    """Let a worker store and fire what is declared, and store more beside it."""
    worker = Worker(app, emit=lambda event: None)
    async with app, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        for _ in range(2):
            await beats.acquire()
        print("pulse:", (await app.schedules.history("pulse"))[-1].outcome)

        weekdays = Cron("0 9 * * 1-5", tz="Europe/Berlin")
        stored = await app.schedules.put("report-eu", report.job("eu"), weekdays)
        print("stored:", stored.timing)
        job = await app.schedules.trigger("report-eu")
        print("triggered:", await job.result(timeout=10))
        print("paused:", (await app.schedules.pause("report-eu")).is_paused)

        soon = datetime.now(UTC) + timedelta(milliseconds=100)
        await app.schedules.put("report-all", report.job("all"), At(soon))
        await reported.wait()

        async for schedule in app.schedules.list():
            print(f"{schedule.id}: {schedule.timing.split()[0]}, set by {schedule.set_by}")
            await app.schedules.delete(schedule.id)
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

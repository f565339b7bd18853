"""Testing: jobs run when the test says so, and a day takes no time. No server is needed."""

import asyncio
from datetime import timedelta

from headrace import App, Retry
from headrace.testing import Kit

app = App()  # Redis, in production


@app.task(queue="bank", max_attempts=3, retry=Retry(min=60, max=3600))
async def charge(number: int, *, amount: float) -> str:
    """Fail for large amounts."""
    if amount > 1000:
        raise ConnectionError("the bank hung up")
    await receipt.options(delay=timedelta(days=1)).enqueue(number)
    return f"charged {amount:g}"


@app.task(queue="mail")
async def receipt(number: int) -> str:
    """Comes a day later."""
    return f"receipt {number}"


async def main() -> None:
    """Do what a test would do; with pytest, the fixture headrace_kit saves the first line."""
    async with Kit(app) as kit:
        await charge.enqueue(1, amount=20)
        kit.assert_enqueued(charge.job(1, amount=20))
        kit.assert_not_enqueued(receipt)

        for attempt in await kit.run_until_idle():
            print("now:", attempt.result)
        await kit.advance(timedelta(days=1))
        for attempt in await kit.run_until_idle():
            print("a day later:", attempt.result)

        job = await charge.enqueue(2, amount=2000)
        for attempt in await kit.run_until_idle(advance=True):
            print(f"start {attempt.start}: {attempt.outcome}, {attempt.error}")
        print("state:", (await job.status()).state)

        print("alone:", await kit.perform(receipt.job(3)))


if __name__ == "__main__":
    asyncio.run(main())

"""What happens when a handler fails: retries, dead letters, and another chance for them."""

import asyncio
import sys

import anyio

from headrace import App, Context, FailPermanently, JobFailed, Retry, RetryLater, Worker

URL = sys.argv[2] if sys.argv[1:2] == ["--url"] else None  # else HEADRACE_URL
app = App(URL, tenant="examples")
is_bank_open = False


@app.task(queue="payments", max_attempts=3, retry=Retry(min=0.01, max=0.05))
async def charge(context: Context, amount: int) -> str:
    """Fail twice: the wait between attempts grows, and is drawn at random."""
    if context.failures < 2:
        raise ConnectionError("the bank is busy")
    return f"charged {amount} after {context.failures} failures"


@app.task(queue="payments", max_attempts=2)
async def pay_out(amount: int) -> str:
    """Say oneself when to try again, and that there is no point in it."""
    if amount < 0:
        raise FailPermanently(f"{amount} is not an amount")
    if not is_bank_open:
        raise RetryLater(0.01, reason="the bank is closed")
    return f"paid {amount}"


async def main() -> None:
    """Run jobs into each kind of failure, then mend them."""
    global is_bank_open
    worker = Worker(app, emit=lambda event: None)  # the default would log the failures
    payments = app.queue("payments")
    async with app, anyio.create_task_group() as group:
        group.start_soon(worker.run)
        print(await charge.enqueue_and_wait(5))
        for amount in (-1, 7):
            try:
                await pay_out.enqueue_and_wait(amount)
            except JobFailed as error:
                print(f"dead letter: {error.reason}: {error.error_message}")

        rows = [row async for row in payments.jobs("failed", task=pay_out.name)]
        print("dead letters:", sorted((row.reason, row.failures) for row in rows))

        is_bank_open = True
        mended = [row.id for row in rows if row.reason == "exhausted"]
        print("redriven:", await payments.redrive(*mended))
        print(await app.job(mended[0], queue="payments", task=pay_out.name).result(timeout=10))
        print("purged:", await payments.purge("failed", task=pay_out.name))
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

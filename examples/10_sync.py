"""Without an event loop: a script enqueues, waits and looks, and nothing of it is awaited."""

import argparse
import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headrace import Context, SyncApp, Worker

app = SyncApp("memory://sync")


@app.task(queue="mail")
async def send(to: str, *, template: str = "plain") -> str:
    """Be awaited by the worker, which has an event loop."""
    return f"{template} to {to}"


@app.task(queue="mail")
def spell(context: Context, word: str) -> int:
    """Pass the letters on, one by one."""
    for letter in word:
        context.emit(letter)
    return len(word)


@contextmanager
def working() -> Iterator[None]:
    """Have a worker in a thread; `headrace worker module:app` is one in a process of its own."""
    worker = Worker(app)
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()))
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()


def main() -> None:
    """Do what a script or a view does."""
    with app:
        job = send.options(id="welcome:ada").enqueue("ada", template="welcome")
        print(f"{job.outcome}: {job.status().state}")
        print("again:", send.options(id="welcome:ada").enqueue("ada").outcome)
        many = app.enqueue_many(send.job(f"user {n}") for n in range(1_000))
        print("queued:", app.queue("mail").stats().queued)
        with working():
            print("result:", job.result(timeout=30))
            print("at once:", send.enqueue_and_wait("bob"))
            print("letters:", *spell.enqueue("abc").stream())
            print("all:", len({job.result(timeout=30) for job in many}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default=app.app.url)
    app.app.url = parser.parse_args().url
    main()

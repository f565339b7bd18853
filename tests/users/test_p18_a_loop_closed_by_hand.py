"""P18: a loop that a program closes by hand leaves no complaint of asyncio."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.until import patience

PROGRAM = """
import asyncio
import gc

from headrace import App, WaitTimeout

app = App()

@app.task(name="send")
async def send(number: int) -> None: ...

async def wait() -> None:
    job = await send.enqueue(1)
    try:
        await job.result(timeout=0.05)
    except WaitTimeout:
        print("waited")

for _ in range(2):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(wait())
    loop.close()
    del loop
    gc.collect()
"""


def test_p18_a_loop_that_is_closed_by_hand_leaves_no_complaint(storage_url: str) -> None:
    """P18."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "HEADRACE_REDIS_URL": storage_url},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.stdout == "waited\nwaited\n"
    complaints = [line for line in done.stderr.splitlines() if "Task was destroyed" in line]
    assert complaints == []

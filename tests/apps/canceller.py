"""A process that cancels all jobs of a queue, and is killed as soon as it has been answered.

Run as ``python -m tests.apps.canceller URL TENANT QUEUE``. It writes its report.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import msgspec

from headrace import App


async def cancel_all(url: str, tenant: str, queue: str) -> None:
    """Cancel them, and die."""
    app = App(url, tenant=tenant)
    report = await app.queue(queue).cancel(all_jobs=True)
    os.write(1, msgspec.json.encode(report.to_dict()))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(cancel_all(*sys.argv[1:4]))

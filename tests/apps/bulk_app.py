"""The writer process of the crash tests of bulk writes, which may die after any of its calls.

Run as ``python -m tests.apps.bulk_app URL TENANT ROWS DIES_AFTER``: it ends itself by SIGKILL
once so many calls of the write were answered, with 0 never. At the end it prints the report as
JSON.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from headrace import App, Job
from headrace.app import clients_of
from headrace.storage import BulkWriter, Storage
from headrace.storage.verbs import verbs_of
from tests.support.openings import opening

QUEUE = "mail"
TENANT = "crash"
WRITE = "import-7"
OF_WRITES = verbs_of(BulkWriter)


class MortalStorage:
    """Passes every call on; dies once so many calls of bulk writes were answered."""

    def __init__(self, inner: Storage, dies_after: int) -> None:
        self._inner = inner
        self._left = dies_after

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        if name not in OF_WRITES:
            return verb

        async def counted(*args: Any, **kwargs: Any) -> Any:
            answer = await verb(*args, **kwargs)
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return counted


def an_app(url: str, tenant: str = TENANT) -> App[None]:
    """Return an app whose one task returns its row."""
    app: App[None] = App(url, tenant=tenant)

    @app.task(name="load", queue=QUEUE)
    async def load(row: int) -> int:
        return row

    return app


def jobs_of(app: App[None], rows: int) -> Iterator[Job]:
    """Yield a job for each row, without ids: twice staged and published it would be two jobs."""
    return (app.tasks["load"].job(row) for row in range(rows))


async def write(app: App[None], rows: int) -> dict[str, Any]:
    """Write all rows, and return the report."""
    async with app.bulk(WRITE, queue=QUEUE) as bulk:
        await bulk.add_many(jobs_of(app, rows))
    return bulk.report.to_dict()


async def main(url: str, tenant: str, rows: str, dies_after: str) -> None:
    """Write on a storage that dies."""
    app = an_app(url, tenant)
    clients = clients_of(app)
    mortal = cast(Storage, MortalStorage(clients.open_storage(), int(dies_after)))
    with clients.replaced(opening(lambda: mortal)):
        async with app:
            report = await write(app, int(rows))
    sys.stdout.buffer.write(msgspec.json.encode(report))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

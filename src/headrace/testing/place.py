"""What a kit's workers do at one queue: register, claim from every lane, record, leave."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from typing import Any, Self

from headrace.app import App
from headrace.job import DEFAULT_LANE, PROCESS_LANE, new_job_id
from headrace.release import VERSION
from headrace.storage.base import Storage
from headrace.storage.values import CallId, ClaimReply, IncarnationInfo
from headrace.worker.incarnation import Incarnation

LANES = (DEFAULT_LANE, PROCESS_LANE)
"""In the order in which a kit looks for jobs."""

LEASE_MS = 3_600_000
"""Real workers beside a kit sweep by real time: they must not take its runs for dead."""


class Place:
    """One incarnation on one queue.

    Args:
        storage: where the queue is.
        queue: its name.
        incarnation: registered there.
    """

    def __init__(self, storage: Storage, queue: str, incarnation: str) -> None:
        self.queue = queue
        self.id = incarnation
        self.incarnation: Incarnation | None = None
        self._storage = storage
        self._claims = claims_of(incarnation)

    @classmethod
    async def register(
        cls, app: App[Any], storage: Storage, queue: str, *, lease_ms: int = LEASE_MS
    ) -> Self:
        """Return a new incarnation's."""
        incarnation = new_job_id()
        await storage.register(queue, worker_info(app, incarnation, lease_ms=lease_ms))
        return cls(storage, queue, incarnation)

    @property
    def active(self) -> int:
        """How many attempts run."""
        return 0 if self.incarnation is None else len(self.incarnation.attempts)

    async def claim(self, lane: str, slots: int) -> ClaimReply:
        """Claim for that many slots of a lane."""
        call, nonce = next(self._claims)
        return await self._storage.claim(self.queue, call=call, nonce=nonce, slots={lane: slots})

    async def report(self) -> None:
        """Store what running handlers have said of their progress and output."""
        if self.incarnation is not None:
            await self.incarnation.reports.report_once()

    async def settle(self) -> None:
        """Record what has ended, after what it has said."""
        if self.incarnation is not None:
            await self.report()
            await self.incarnation.settler.drain()

    async def close(self) -> None:
        """Stop and hand back what still runs, and forget the incarnation."""
        if self.incarnation is not None:
            await self.incarnation.stop()
            await self.incarnation.put_back()
        await self.settle()
        while await self._storage.retire(self.queue, self.id):
            pass


def claims_of(incarnation: str) -> Iterator[tuple[CallId, str]]:
    """Yield the call and the nonce of one claim of an incarnation after another."""
    number = 0
    while True:
        number += 1
        yield CallId(incarnation, number), f"{incarnation}/{secrets.token_hex(8)}"


def worker_info(app: App[Any], incarnation: str, *, lease_ms: int) -> IncarnationInfo:
    """Return what an incarnation of a kit says of itself."""
    return IncarnationInfo(
        incarnation=incarnation,
        name="kit",
        host=socket.gethostname(),
        pid=os.getpid(),
        version=VERSION,
        concurrency=1,
        process_slots=1,
        tasks={name: task.settings.lane for name, task in app.tasks.items()},
        lease_ms=lease_ms,
        registered_ms=0,
    )

"""Incarnations of a kit's workers: registered at a queue, told when to claim, and closed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from headrace.app import App, limits_of
from headrace.events import Emit
from headrace.job import DEFAULT_LANE, PROCESS_LANE, new_job_id
from headrace.storage.base import Storage
from headrace.storage.incarnations import ClaimReply
from headrace.storage.limits import SLOTS_LIMIT
from headrace.task_limits import terms_texts
from headrace.worker.incarnation import AttemptRunner, Incarnation
from headrace.worker.service import worker_info
from headrace.worker.slots import Slots

LEASE_MS = 3_600_000
"""Real workers beside a kit sweep by real time: they must not take its runs for dead."""


def lanes_of(app: App[Any]) -> list[str]:
    """Return all lanes of an app's tasks, in the order in which a kit looks for jobs."""
    needed = {task.settings.lane for task in app.tasks.values()}
    return [DEFAULT_LANE, PROCESS_LANE, *sorted(needed - {DEFAULT_LANE, PROCESS_LANE})]


async def open_incarnation(
    app: App[Any],
    storage: Storage,
    queue: str,
    *,
    runner: AttemptRunner,
    emit: Emit,
    lease_ms: int = LEASE_MS,
) -> Incarnation:
    """Return a new incarnation, which the storage knows."""
    lanes = lanes_of(app)
    incarnation = Incarnation(
        storage,
        queue=queue,
        incarnation=new_job_id(),
        lease_s=lease_ms / 1000,
        executor=runner,
        lanes={lane: Slots(SLOTS_LIMIT, {queue: 1}) for lane in lanes},
        emit=emit,
    )
    info = worker_info(
        app,
        name="kit",
        concurrency=1,
        process_slots=1,
        lanes=dict.fromkeys(lanes, 1),
        lease_ms=lease_ms,
    )
    limits = terms_texts(limits_of(app).get(queue, {}))
    await incarnation.register(replace(info, limits=limits))
    return incarnation


async def claim(incarnation: Incarnation, lane: str, count: int) -> ClaimReply:
    """Claim for that many slots of a lane, and where nothing runs for one job of whatever slots."""
    async with incarnation.claims as call:
        reply = await incarnation.claim(call, lane, count)
    needs = reply.awaited.get(lane)
    if needs is not None and not reply.jobs and not incarnation.attempts:
        async with incarnation.claims as call:
            reply = await incarnation.claim(call, lane, needs)
    await incarnation.meet_strikes(reply.strikes)
    return reply


async def close(incarnation: Incarnation) -> None:
    """Stop and put back what still runs, and have the storage forget it."""
    await incarnation.stop()
    await incarnation.put_back()
    await incarnation.record()
    await incarnation.retire()

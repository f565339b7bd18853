"""What the doctor says of queues whose records were lost, and how it puts them right."""

from __future__ import annotations

import msgspec

from headrace.cli.output import echo_json, note
from headrace.cli.tables import Column, table
from headrace.job import JobState
from headrace.storage.base import Inspector, Storage
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.queues import QueueCounts
from headrace.storage.values import Finding

COUNTED = (JobState.QUEUED, JobState.SCHEDULED, JobState.RETRYING, JobState.ACTIVE)


class RepairedQueue(msgspec.Struct):
    """One queue in the JSON document of ``doctor --repair``."""

    queue: str
    mended: int


async def repair_queues(storage: Storage) -> list[RepairedQueue]:
    """Repair the tenant's queues to the end."""
    found = []
    for queue in await storage.queues():
        done = await storage.repair(queue, is_full=True)
        mended = done.mended
        while done.cursor:
            done = await storage.repair(queue, cursor=done.cursor)
            mended += done.mended
        found.append(RepairedQueue(queue, mended))
    return found


def show_repaired(found: list[RepairedQueue], *, where: str, output: str) -> None:
    """Print what was put right; ``where`` is the storage in words."""
    if output == "json":
        echo_json(found)
    elif not found:
        note(f"There are no queues in {where}.")
    else:
        rows = [(one.queue, one.mended) for one in found]
        table((Column("QUEUE"), Column("PUT RIGHT")), rows, is_wide=True)


async def find_lost(storage: Inspector) -> list[Finding]:
    """Hold the counts of the tenant's queues against their listings, where these are short."""
    wrong = [text for queue in await storage.queues() for text in await _wrong(storage, queue)]
    if not wrong:
        return []
    return [Finding("queues", "warning", f"{'; '.join(wrong)}: headrace doctor --repair")]


async def _wrong(storage: Inspector, queue: str) -> list[str]:
    before = _counts(await storage.stats(queue))
    found = []
    for state in COUNTED:
        page = await storage.list_jobs(queue, state, limit=BATCH_LIMIT)
        if not page.cursor and len(page.rows) != before[state]:
            found.append(
                f"queue {queue} counts {before[state]} {state.value} jobs, and has {len(page.rows)}"
            )
    # Jobs that move between two looks look like this too.
    return found if _counts(await storage.stats(queue)) == before else []


def _counts(stats: QueueCounts) -> dict[JobState, int]:
    return {state: getattr(stats, state.value) for state in COUNTED}

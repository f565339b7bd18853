"""What the machine may ask for of schedules, in tables."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.storage.schedules import Occurrence, ScheduleWrite
from tests.model import asks

IDS = ("s", "t", "é: {u}", "v")
UNKNOWN_ID = "none"
APPS = ("shop", "shop.eu")
DIGESTS = ("r1", "r2", "r3")
ALIVE_MS = (15 * asks.SECOND_MS, asks.HOUR_MS)
HOLDS_MS = (1, 5 * asks.SECOND_MS, asks.HOUR_MS)
LIMITS = (1, 2, 500)

DUE_IN_MS = {
    "due": 0,
    "due for 1 ms": -1,
    "due for an hour": -asks.HOUR_MS,
    "in 1 ms": 1,
    "in a minute": asks.MINUTE_MS,
    "in an hour": asks.HOUR_MS,
}
CHANGES: dict[str, dict[str, Any]] = {
    "nothing else": {},
    "declared": {"app": "shop"},
    "declared elsewhere": {"app": "shop.eu", "body": b"\x00" * 65},
    "with history": {"history": (b"1", b"2")},
    "with much history": {"history": tuple(b"%d" % n for n in range(99))},
}
EXPECTED = {"the version": 0, "an earlier version": -1, "a later version": 1}
FIRST_VERSION = 10**14
LATER_MS = (-asks.HOUR_MS, -1, 0, 1, 1, asks.HOUR_MS)
"""By how much an occurrence is later than the last that was fired."""
UNTIL_MS = {"in time": asks.HOUR_MS, "just in time": 0, "late": -1}


def make_write(
    schedule_id: str, version: int, due_ms: int | None, changes: dict[str, Any]
) -> ScheduleWrite:
    """Return a change of a schedule; None for ``due_ms`` deletes it."""
    if due_ms is None:
        return ScheduleWrite(id=schedule_id, expected=version)
    return ScheduleWrite(
        id=schedule_id,
        expected=version,
        due_ms=due_ms,
        first_version=FIRST_VERSION,
        **{"body": b"body", **changes},
    )


def make_occurrence(
    schedule_id: str, instant_ms: int, kinds: list[str], *, now: int, channel: str, job_id: str = ""
) -> Occurrence:
    """Return an occurrence; its job has an id of its own, unless another one is given."""
    job_id = job_id or f"{schedule_id}:{instant_ms}"
    job = asks.make_job(job_id, kinds, now=now, channel=channel)
    return Occurrence(schedule_id, instant_ms, msgspec.structs.replace(job, is_new_id=False))

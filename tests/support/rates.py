"""Whether jobs have started faster than a rate allows, by the clock of their storage."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace import App, JobEventKind

LATE_MS = 250
"""By how much Redis may stamp an event later than its call has looked at the clock: the entry gets
the time at which it is written, and on a busy machine the server may not run in between."""


async def starts_ms(app: App[None], queue: str, of: Collection[str], count: int) -> list[int]:
    """Return when jobs have started, so many times together, of all that events still tell."""
    found: list[int] = []
    async for event in app.queue(queue).events(after="0"):
        if event.kind is JobEventKind.ACTIVE and event.job_id in of:
            found.append(round(event.at.timestamp() * 1000))
        if len(found) == count:
            break
    return sorted(found)


def bursts(app: App[None], starts: Sequence[int], *, rate: float, burst: int) -> list[str]:
    """Return where more have started than a rate, in jobs a second, and its burst allow."""
    late_ms = LATE_MS if app.url.startswith("redis") else 0
    found = []
    for first, begin in enumerate(starts):
        for count, end in enumerate(starts[first:], 1):
            if count > burst + (end - begin + late_ms + 1) * rate / 1000 + 1:
                found.append(f"{count} in {end - begin} ms")
    return found

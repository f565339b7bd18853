"""Instants as text, for tests of timings."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from headrace import Cron


def ms(text: str) -> int:
    """Return an instant such as ``2026-11-29T12:00Z`` in milliseconds."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def local(instant_ms: int, zone: str) -> str:
    """Return what the clock of a zone shows at an instant, with its offset."""
    return datetime.fromtimestamp(instant_ms / 1000, ZoneInfo(zone)).isoformat()


def following(cron: Cron, after: str, count: int) -> list[str]:
    """Return the next instants of a timing, as the clock of its zone shows them."""
    found: list[str] = []
    instant: int | None = ms(after)
    while len(found) < count and instant is not None:
        instant = cron.after(instant)
        if instant is not None:
            found.append(local(instant, cron.tz))
    return found

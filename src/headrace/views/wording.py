"""Numbers, spans and instants in words, for people."""

from __future__ import annotations

import shlex

from headrace.clock import datetime_of
from headrace.plain import printable
from headrace.storage.situation import Before

LINE_LIMIT = 200
"""Most characters of what an error says."""

_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))


def span(milliseconds: int) -> str:
    """Return a duration with its two largest units: ``350ms``, ``4.2s``, ``5m 10s``, ``3d 4h``."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f}s"
    left = milliseconds
    parts: list[str] = []
    for size, unit in _SPANS:
        if left >= size or parts:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(part for part in parts[:2] if not part.startswith("0"))


def plural(count: int, noun: str) -> str:
    """Return ``1 job``, ``1,200 jobs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def others(before: Before) -> str:
    """Return ``1 other job``, ``at least 50,000 other jobs``."""
    return ("at least " if before.is_least else "") + plural(before.n, "other job")


def in_line(before: Before | None) -> str:
    """Return how many stand before a job in a line, as the end of a sentence; "" for no line."""
    if before is None:
        return ""
    if not before.n:
        return "; it is the first in line"
    return f"; {others(before)} {'is' if before.n == 1 else 'are'} in line before it"


def instant_words(instant_ms: int, now_ms: int) -> str:
    """Return an instant in UTC, and how far it is from another one."""
    distance = instant_ms - now_ms
    told = f"in {span(distance)}" if distance > 0 else f"{span(-distance)} ago"
    return f"{datetime_of(instant_ms):%Y-%m-%d %H:%M:%S} UTC ({told})"


def beginning(text: str) -> str:
    """Return the first characters of a text as one printable line."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= LINE_LIMIT else f"{line[: LINE_LIMIT - 1]}…"


def command(*words: str) -> str:
    """Return a command as it may be typed."""
    return shlex.join(("headrace", *words))

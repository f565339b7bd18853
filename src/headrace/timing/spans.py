"""Lengths of time in plain words."""

from __future__ import annotations

UNITS = (
    ("day", 24 * 3_600_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1_000),
)


def span_words(span_ms: int) -> str:
    """Return a length of time in the largest unit that divides it: "30 seconds", "hour"."""
    for unit, unit_ms in UNITS:
        count, rest = divmod(span_ms, unit_ms)
        if not rest:
            return unit if count == 1 else f"{count:,} {unit}s"
    return f"{seconds_text(span_ms)} seconds"


def seconds_text(span_ms: int) -> str:
    """Return milliseconds as seconds, with no more decimals than there are: "30", "0.25"."""
    return f"{span_ms / 1000:.3f}".rstrip("0").rstrip(".")

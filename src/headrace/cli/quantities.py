"""The types of options that stand for a quantity: durations, sizes, instants."""

from __future__ import annotations

import re
from datetime import datetime

import click

from headrace.plain import shown

MOST_BYTES = 2**62
_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNITS_BYTES: dict[str, int] = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b|b)?", re.IGNORECASE)


def duration(value: str | float) -> float:
    """Read a duration, in seconds or with a unit: 500ms, 30s, 5m, 2h, 7d.

    Raises:
        BadParameter: it is none.
    """
    if isinstance(value, int | float):
        return float(value)
    found = _DURATION.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(
            f"{shown(value)} is not a duration: use seconds, or 500ms, 30s, 5m, 2h, 7d"
        )
    return float(found[1]) * _UNITS_S[found[2] or "s"]


def size(value: str | int) -> int:
    """Read a number of bytes, bare or with a unit: 512MB is 512,000,000, 1GiB is 1,073,741,824.

    Raises:
        BadParameter: it is none.
    """
    if isinstance(value, int):
        return value
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"{shown(value)} is not a size: use bytes, or 512MB, 1GiB, 1.5GB")
    count: float = float(found[1]) * _UNITS_BYTES[(found[2] or "b").lower()]
    if count > MOST_BYTES:
        raise click.BadParameter(f"{shown(value)} is out of bounds: use {MOST_BYTES:,} at most")
    return round(count)


def instant(value: str | datetime) -> datetime:
    """Read an instant with its time zone, as ISO 8601 writes it.

    Raises:
        BadParameter: it is none, or has no zone.
    """
    if isinstance(value, datetime):
        return value
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise click.BadParameter(
            f"{shown(value)} is not an instant with a zone: use 2026-01-31T08:00+01:00 or …Z"
        )
    return found

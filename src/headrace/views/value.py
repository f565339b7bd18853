"""What all public values have in common: `to_dict`, and how instants and spans are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from headrace.clock import datetime_of
from headrace.codec import read
from headrace.storage.histogram import percentile


class PublicValue:
    """What all of them have: `to_dict`."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain data, ready for JSON: the document of ``-o json``.

        Instants are RFC 3339 text, durations whole milliseconds: ``run_s`` is ``run_ms`` there.
        """
        return dict(_entry(field.name, getattr(self, field.name)) for field in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Durations in seconds; each at most a tenth too high, as the buckets grow by a tenth."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, histogram_ms: Mapping[int, int]) -> Percentiles | None:
        """Return those of a histogram, None if nothing was measured."""
        p50, p95, p99 = (percentile(histogram_ms, share) for share in (0.50, 0.95, 0.99))
        if p50 is None or p95 is None or p99 is None:
            return None
        return cls(p50=p50 / 1000, p95=p95 / 1000, p99=p99 / 1000)


def _entry(name: str, value: Any) -> tuple[str, Any]:
    if name.endswith("_s"):
        return f"{name.removesuffix('_s')}_ms", _milliseconds(value)
    if isinstance(value, PublicValue):
        return name, value.to_dict()
    if isinstance(value, tuple):
        return name, [part.to_dict() if isinstance(part, PublicValue) else part for part in value]
    # What is raw stays so: it may hold more digits than a float.
    return name, msgspec.to_builtins(value, builtin_types=(msgspec.Raw,))


def _milliseconds(value: Any) -> Any:
    if isinstance(value, Percentiles):
        return {part.name: _milliseconds(getattr(value, part.name)) for part in fields(value)}
    return None if value is None else round(value * 1000)


def instant(instant_ms: int) -> datetime | None:
    """Return an instant, None of none."""
    return datetime_of(instant_ms) if instant_ms else None


def read_plain(decode: Callable[[bytes], Any], stored: bytes | None) -> Any:
    """Return what bytes hold, as text where they can't be read, None of none."""
    if not stored:
        return None
    try:
        return read(decode, stored)
    except msgspec.MsgspecError:
        return stored.decode(errors="replace")

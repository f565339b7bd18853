"""A timing of one instant."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.clock import datetime_of, epoch_ms


class At(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="at"):
    """Once, at an instant.

    Args:
        instant: an aware `datetime` from 1970 to 9999, kept in UTC and rounded up to a millisecond.

    Raises:
        InvalidOption: it is not an aware `datetime`, or is out of bounds.
    """

    instant: datetime

    def __post_init__(self) -> None:
        instant_ms = epoch_ms(self.instant, name="At.instant")
        msgspec.structs.force_setattr(self, "instant", datetime_of(instant_ms))

    def after(self, after_ms: int, *, start_ms: int | None = None) -> int | None:
        """Return the instant if it is later than ``after_ms`` and not before ``start_ms``."""
        instant_ms = epoch_ms(self.instant, name="At.instant")
        is_ahead = instant_ms > after_ms and (start_ms is None or instant_ms >= start_ms)
        return instant_ms if is_ahead else None

    def newest(
        self, after_ms: int, until_ms: int, limit: int, *, start_ms: int | None = None
    ) -> list[int]:
        """Return the instant in a list, if it is after ``after_ms`` and not after ``until_ms``."""
        instant_ms = self.after(after_ms, start_ms=start_ms)
        return [instant_ms] if instant_ms is not None and instant_ms <= until_ms and limit else []

    def shortest_gap_ms(self, from_ms: int) -> int | None:
        """Return None: there is one instant, whatever ``from_ms``."""
        return None

    def explain_instant(self, instant_ms: int) -> str:
        """Return "": no rule about clocks applies to an instant."""
        return ""

    def words(self) -> str:
        """Return what it means in plain words: "once, at 09:00:00 on 30 November 2026, UTC"."""
        return f"once, at {self.instant:%H:%M:%S on} {self.instant.day} {self.instant:%B %Y}, UTC"

    def __str__(self) -> str:
        precision = "milliseconds" if self.instant.microsecond else "seconds"
        return f"at {self.instant.isoformat(timespec=precision).replace('+00:00', 'Z')}"

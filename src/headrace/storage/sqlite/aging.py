"""Aging: of so many jobs that a queue's claims take one is of a lower tier than the best.

It is of that tier whose head has waited longest. A queue that does not ask for it pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from headrace.storage.sqlite.unit import UnitOfWork

_TAKEN = "SELECT aged FROM queues WHERE key = ?"
_NOTE = "UPDATE queues SET aged = ? WHERE key = ?"
_HEADS = """
SELECT key, seq, tier, changed_ms FROM jobs
WHERE queue = ? AND lane = ? AND seq IS NOT NULL AND tier < ? ORDER BY tier DESC, seq
"""
_OVER_ALL = 10

IsThere = Callable[[int, int], bool]
"""Whether a ready job may be taken by this claim, by its key and its place."""


class Look(msgspec.Struct, frozen=True):
    """What one look of a claim asks for: so many jobs of a lane, of one tier alone or the best."""

    lane: str
    count: int
    tier: int | None = None


class Aging(msgspec.Struct):
    """How many jobs the claims of a queue have taken since the last of a lower tier.

    Attributes:
        every: of so many jobs one is of a lower tier.
        taken: how many there were since, so many less one at most.
        before: how many there were before this claim.
    """

    every: int
    taken: int
    before: int

    def bound(self, unit: UnitOfWork, look: Look, is_there: IsThere) -> Look:
        """Return a look for what is due by its age, or for no more than may come before that."""
        left = self.every - 1 - self.taken
        if left > 0:
            return Look(look.lane, min(look.count, left))
        tier = _lower_tier(unit, look.lane, is_there)
        return look if tier is None else Look(look.lane, 1, tier)

    def note(self, taken: int, *, is_aged: bool) -> None:
        """Note how many jobs were taken, and whether that was by their age."""
        if not is_aged:
            self.taken = min(self.every - 1, self.taken + taken)
        elif taken:
            self.taken = 0


def opened(unit: UnitOfWork) -> Aging | None:
    """Return what a claim has to know; None of a queue whose tiers are strict."""
    every = unit.settings.aging
    if not every:
        return None
    [taken] = unit.db.execute(_TAKEN, (unit.key,)).fetchone()
    return Aging(every, min(every - 1, taken), taken)


def close(unit: UnitOfWork, aging: Aging) -> None:
    """Keep how many jobs were taken."""
    if aging.taken != aging.before:
        unit.db.execute(_NOTE, (aging.taken, unit.key))


def _lower_tier(unit: UnitOfWork, lane: str, is_there: IsThere) -> int | None:
    """Return the tier below the best of a lane whose head has waited longest, None for none."""
    heads: list[tuple[int, int]] = []
    tier: int | None = _OVER_ALL
    while tier is not None:
        rows = unit.db.execute(_HEADS, (unit.key, lane, tier))
        row = next((row for row in rows if is_there(row[0], row[1])), None)
        rows.close()
        tier = None if row is None else row[2]
        if row is not None:
            heads.append((row[3], -row[2]))
    oldest = min(heads[1:], default=None)
    return None if oldest is None else -oldest[1]

"""Heavy jobs: those that hold more than one slot of their lane, and what a claim makes of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from headrace.storage.incarnations import FreeSlots
from headrace.storage.limits import SLOTS_LOOKS

Unfit = Literal["", "heavy", "short"]
"""Why a job does not start: it needs more slots than the caller has in all, or than are left."""


class Room(msgspec.Struct):
    """What one claim may take yet of a lane: ``limit`` jobs, as long as there are slots.

    Attributes:
        slots: of the caller.
        limit: how many jobs, those that it has taken included.
        taken: how many it has taken.
        extra: how many slots these hold beside one each.
        passed: those that were passed over, by their keys.
        awaited: how many slots the next one needs; 0: it waits for none.
    """

    slots: FreeSlots
    limit: int
    taken: int = 0
    extra: int = 0
    passed: set[int] = msgspec.field(default_factory=set)
    awaited: int = 0

    @property
    def left(self) -> int:
        """How many slots are left."""
        return self.slots.free - self.extra - self.taken

    def unfit(self, key: int, slots: int) -> Unfit:
        """Note that a job does not start if it needs too many slots, and return why not."""
        if slots > self.slots.total:
            self.passed.add(key)
            if len(self.passed) == SLOTS_LOOKS:
                self.limit = 0
            return "heavy"
        if slots > self.left:
            self.awaited, self.limit = slots, 0
            return "short"
        return ""

    def take(self, slots: int) -> None:
        """Note that a job starts."""
        self.taken += 1
        if slots > 1:
            self.extra += slots - 1
            self.limit = min(self.limit, self.slots.free - self.extra)

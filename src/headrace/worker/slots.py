"""A worker's slots, shared between its queues by weight.

A queue that left jobs behind at its last claim is hungry. Slots that come free are granted to
hungry queues by smooth weighted round robin, even while one of them is busy claiming; queues
without jobs cost nothing, and a low weight is never starved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Slots:
    """Counts free slots and who may have them.

    Args:
        total: how many there are.
        weights: by queue.
        free: how many of them are free at first, default all.
    """

    def __init__(self, total: int, weights: Mapping[str, int], *, free: int | None = None) -> None:
        self.total = total
        self.free: int = total if free is None else free
        self._weights = dict(weights)
        self._credit = dict.fromkeys(weights, 0)
        self._granted = dict.fromkeys(weights, 0)
        self._hungry: set[str] = set()
        self._nudges: dict[str, Callable[[], None]] = {}

    def on_grant(self, queue: str, nudge: Callable[[], None]) -> None:
        """Call ``nudge`` whenever the queue is granted a slot."""
        self._nudges[queue] = nudge

    def take(self, queue: str) -> int:
        """Take what the queue may have now: its grants, and all free ones if nobody else is hungry.

        With none, the queue counts as hungry and is nudged when it is granted one.
        """
        count = self._granted[queue]
        self._granted[queue] = 0
        if self.free and not self._hungry - {queue}:
            count += self.free
            self.free = 0
        if count == 0:
            self._hungry.add(queue)
            self._distribute()
        return count

    def give_back(self, queue: str, count: int, *, is_hungry: bool) -> None:
        """Return slots that a claim did not fill, and say whether the queue left jobs behind."""
        self.free += count
        if is_hungry:
            self._hungry.add(queue)
        else:
            self._hungry.discard(queue)
            self.free += self._granted[queue]
            self._granted[queue] = 0
        self._distribute()

    def release(self) -> None:
        """Return the slot of an attempt that ended."""
        self.free += 1
        self._distribute()

    def _distribute(self) -> None:
        if not self._hungry:
            return
        while self.free:
            chosen = self._next()
            self._granted[chosen] += 1
            self.free -= 1
            nudge = self._nudges.get(chosen)
            if nudge is not None:
                nudge()

    def _next(self) -> str:
        """Smooth weighted round robin: all earn their weight, the richest pays the sum."""
        hungry = self._hungry
        if len(hungry) == 1:
            return next(iter(hungry))
        paid = 0
        for queue in hungry:
            weight = self._weights[queue]
            self._credit[queue] += weight
            paid += weight
        # Ties go by name, so that a run can be repeated.
        chosen = max(sorted(hungry), key=self._credit.__getitem__)
        self._credit[chosen] -= paid
        return chosen

"""A worker's slots, shared between its queues by weight.

A queue that left jobs behind at its last claim is hungry. Hungry queues take turns: what comes free
is granted to the one whose turn it is, even while it is busy claiming, until it has come for it or
has its portion. So a claim brings many jobs when slots come free faster than claims are answered,
and slots that come free one by one go to one queue after another.

A queue whose next job needs several slots has its turn until it has so many: it keeps what comes
free and claims nothing meanwhile, so that a stream of light jobs does not starve a heavy one.

A worker begins at a random point of the round, with all queues hungry. Workers may be many and live
for a few jobs each: if each began with the same queue, others would never have a turn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from headrace.job import PROCESS_LANE
from headrace.storage.limits import BATCH_LIMIT

ROUND = 2
"""How many times the worker's slots the portions of one round of turns are.

1 halves what a claim brings. 4 doubles it, which saved another tenth of the time a job, but the
last in a round would wait twice as long.
"""


class Slot:
    """What an attempt holds: a slot, or several. It comes free once, however often that is said.

    Args:
        lane: which lane's.
        free: called for each slot that comes free.
        count: how many slots it is.
    """

    __slots__ = ("_count", "_free", "_is_passed_on", "lane")

    def __init__(
        self, lane: str, free: Callable[[], None] | None = None, *, count: int = 1
    ) -> None:
        self.lane: str = lane
        self._free = free
        self._count = count
        self._is_passed_on = False

    def release(self) -> None:
        """Let it come free."""
        free, self._free = self._free, None
        if free is not None:
            for _ in range(self._count):
                free()

    def pass_on(self) -> bool:
        """Leave a process slot to its child, which offers it again; whether this is one, yet.

        Of several only one is the child's.
        """
        if self.lane != PROCESS_LANE or self._free is None or self._is_passed_on:
            return False
        self._is_passed_on = True
        self._count -= 1
        return True


class Slots:
    """Counts free slots and who may have them.

    The next turn goes to the queue that has had least for its weight (stride scheduling), so a low
    weight is never starved. A queue without jobs costs nothing, and saves nothing up.

    Args:
        total: how many there are.
        weights: by queue.
        free: how many of them are free at first, default all.
    """

    def __init__(self, total: int, weights: Mapping[str, int], *, free: int | None = None) -> None:
        self.total = total
        self.free: int = total if free is None else free
        # Half of them a claim: the worker runs one half while the server hands out the other, which
        # drains a tenth faster.
        self._most = min((total + 1) // 2, BATCH_LIMIT)
        self._began_with = dict(weights)
        self._weights = dict(weights)
        self._granted = dict.fromkeys(weights, 0)
        self._nudges: dict[str, Callable[[], None]] = {}
        self._hungry: dict[str, None] = {}  # a set that keeps the order
        self._needs: dict[str, int] = {}  # slots without which a claim brings nothing
        # The slots that each was granted, divided by its weight, and what that was for the queue
        # whose turn came last, when it came: none that is hungry has had less.
        self._had = dict.fromkeys(weights, 0.0)
        self._level = 0.0
        self._turn = ""
        self._left = 0

    @property
    def is_shared(self) -> bool:
        """Whether several queues take from them."""
        return len(self._weights) > 1

    def begin(self, draw: Callable[[], float] = random.random) -> None:
        """Take all queues for hungry until they have claimed, from a random point of the round on.

        Otherwise the queue that comes first would take what there is. Each must come, or say by
        `give_back` that it does not.

        Args:
            draw: source of random numbers from 0 to 1, one for each queue.
        """
        if self.is_shared:
            self._hungry = dict.fromkeys(self._weights)
            for queue, weight in self._weights.items():
                self._had[queue] = draw() * self._portion(queue) / weight
            self._distribute()

    def weigh(self, queue: str, weight: int) -> None:
        """Let a queue have its turns by a weight from now on, 0: by that which it began with."""
        self._weights[queue] = weight or self._began_with[queue]

    def on_grant(self, queue: str, nudge: Callable[[], None]) -> None:
        """Call ``nudge`` whenever the queue is granted slots."""
        self._nudges[queue] = nudge

    def take(self, queue: str) -> int:
        """Take what the queue may claim now: its grants, and free ones if nobody else is hungry.

        No more than half of all slots, nor than one call may bring. With none, the queue counts as
        hungry and is nudged when it is granted one. One that needs several takes that many or none,
        and is nudged when it is granted the last.
        """
        if self._is_short(queue):
            self._enter(queue)
            self._distribute()
            if self._is_short(queue):
                return 0
        most = max(self._most, self._needs.pop(queue, 0))
        if queue == self._turn:
            self._left = 0
        count = min(self._granted[queue], most)
        self._granted[queue] -= count
        if not self._hungry.keys() - {queue}:
            more = min(self.free, most - count)
            self.free -= more
            count += more
        if count == 0:
            self._enter(queue)
            self._distribute()
        return count

    def take_early(self, queue: str) -> int:
        """Take what a queue that needs more has been granted; its turn goes on."""
        if not self._is_short(queue):
            return 0
        count, self._granted[queue] = self._granted[queue], 0
        return count

    def give_back(self, queue: str, count: int, *, is_hungry: bool, needs: int = 0) -> None:
        """Return slots that a claim did not fill, and say whether the queue left jobs behind.

        Args:
            queue: which queue.
            count: how many slots.
            is_hungry: whether it could take more.
            needs: how many slots its next job holds, 0 where one will do.
        """
        self._needs.pop(queue, None)
        if needs:
            self._needs[queue] = needs
            if queue == self._turn and self._left:
                self._granted[queue] += count
                self._left = max(self._left, needs - self._granted[queue])
                count = 0
            else:
                # Two that kept what they have while they need more would wait for each other.
                count += self._granted[queue]
                self._granted[queue] = 0
            self._enter(queue)
        elif is_hungry:
            self._enter(queue)
        else:
            self._hungry.pop(queue, None)
            count += self._granted[queue]
            self._granted[queue] = 0
        self.free += count
        self._had[queue] = max(self._had[queue] - count / self._weights[queue], self._level)
        self._distribute()

    def release(self) -> None:
        """Take one slot that came free."""
        self.free += 1
        self._distribute()

    def _is_short(self, queue: str) -> bool:
        return self._granted[queue] < self._needs.get(queue, 0)

    def _enter(self, queue: str) -> None:
        if queue not in self._hungry:
            self._hungry[queue] = None
            self._had[queue] = max(self._had[queue], self._level)

    def _distribute(self) -> None:
        while self.free and self._hungry:
            if not self._left or self._turn not in self._hungry:
                self._next_turn()
            chosen = self._turn
            count = min(self.free, self._left)
            self.free -= count
            self._left -= count
            self._granted[chosen] += count
            self._had[chosen] += count / self._weights[chosen]
            if len(self._hungry) == 1:
                self._level = self._had[chosen]  # it takes nothing from anybody
            nudge = self._nudges.get(chosen)
            if nudge is not None and not self._is_short(chosen):
                nudge()

    def _next_turn(self) -> None:
        # Of equals the one that got hungry last, so that a first job does not wait for a round.
        self._turn = min(reversed(self._hungry), key=self._had.__getitem__)
        self._level = self._had[self._turn]
        self._left = max(self._portion(self._turn), self._needs.get(self._turn, 0))

    def _portion(self, queue: str) -> int:
        """Return how many slots a turn of the queue is for."""
        weights = sum(self._weights[name] for name in self._hungry)
        portion = ROUND * self.total * self._weights[queue] // weights
        return max(1, min(portion, self._most))

"""Sees when a worker is to end by itself: at one of its limits, or when a burst is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import anyio

from headrace.worker.consumer import QueueConsumer
from headrace.worker.limits import Limits
from headrace.worker.memory import resident_bytes

LOOK_S = 0.05


class EndObserver:
    """Looks at a worker's queues again and again.

    Args:
        limits: the worker's.
        consumers: its queues.
        is_burst: whether it ends when nothing is ready and nothing runs.
    """

    def __init__(
        self, limits: Limits, consumers: Sequence[QueueConsumer], *, is_burst: bool
    ) -> None:
        self._limits = limits
        self._consumers = consumers
        self._is_burst = is_burst

    async def observe(self, on_end: Callable[[str], None]) -> None:
        """Call ``on_end`` with the cause once there is one; return where there can be none."""
        if not (self._limits.has_end or self._is_burst):
            return
        started_at = time.monotonic()
        cause = ""
        while not cause:
            await anyio.sleep(LOOK_S)
            cause = self._cause(time.monotonic() - started_at)
        on_end(cause)

    def _cause(self, age_s: float) -> str:
        limits = self._limits
        ended = sum(consumer.ended for consumer in self._consumers)
        if limits.max_jobs and ended >= limits.max_jobs:
            return f"it ran {ended} attempts"
        if limits.max_lifetime_s and age_s >= limits.max_lifetime_s:
            return f"it has run for {age_s:.0f} s"
        if limits.max_resident_bytes and (size := resident_bytes()) > limits.max_resident_bytes:
            return f"it has {size:,} bytes of memory"
        if self._is_burst:
            if all(consumer.has_nothing for consumer in self._consumers):
                return "there is nothing left to do"
            for consumer in self._consumers:
                consumer.look_again()
        return ""

"""Knows whether a worker's claims are answered, and tells of an outage once for all its queues."""

from __future__ import annotations

import time

from headrace.events import Emit, StorageLost, StorageRecovered


class Outage:
    """The unanswered claims of a worker, over all its queues, lanes and incarnations.

    Args:
        emit: told of the first that goes unanswered, and when the last of them is answered.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._unanswered: set[tuple[str, str]] = set()
        self._began_at = 0.0

    def begin(self, queue: str, lane: str, error: Exception) -> None:
        """Note that a claim failed; it is repeated."""
        if not self._unanswered:
            self._began_at = time.monotonic()
            self._emit(StorageLost(queue=queue, error=str(error)))
        self._unanswered.add((queue, lane))

    def end(self, queue: str, lane: str) -> None:
        """Note that one was answered."""
        if (queue, lane) in self._unanswered:
            self._unanswered.remove((queue, lane))
            if not self._unanswered:
                after_ms = round((time.monotonic() - self._began_at) * 1000)
                self._emit(StorageRecovered(queue=queue, after_ms=after_ms))

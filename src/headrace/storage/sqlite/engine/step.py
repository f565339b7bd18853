"""One call on the writer's transaction: what it works with, and what it leaves to be told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec

from headrace.storage.values import End

Clock = Callable[[], int]
"""Returns milliseconds since the epoch."""

QueueName = tuple[str, str]
"""Tenant and queue."""


Wake = tuple[int, frozenset[str]]
"""The number of a wake-up, and the lanes that it is for."""


class Effects(msgspec.Struct):
    """What is done after a commit, and not at all when the call is undone.

    Attributes:
        wakes: queues whose consumers are to be woken.
        seen: those that another process has woken, so that nobody else needs to hear: the number.
        ends: of this process's waiters, with their channels.
        has_messages: whether other processes have messages to read.
    """

    wakes: dict[QueueName, Wake] = msgspec.field(default_factory=dict)
    seen: dict[QueueName, int] = msgspec.field(default_factory=dict)
    ends: list[tuple[str, End]] = msgspec.field(default_factory=list)
    has_messages: bool = False

    def add(self, other: Effects) -> None:
        """Take over what another call left."""
        for queue, (number, lanes) in other.wakes.items():
            before = self.wakes.get(queue, (0, frozenset()))[1]
            self.wakes[queue] = (number, lanes | before)
        self.seen.update(other.seen)
        self.ends += other.ends
        self.has_messages = self.has_messages or other.has_messages


class Step(msgspec.Struct):
    """A call's connection, its time, the process it runs in, and its effects."""

    db: sqlite3.Connection
    now_ms: int
    process: str
    effects: Effects

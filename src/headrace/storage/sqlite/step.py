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


class Effects(msgspec.Struct):
    """What is done after a commit, and not at all when the call is undone.

    Attributes:
        wakes: queues whose consumers are to be woken, with the number of the wake-up.
        seen: the same, of another process, so that nobody else needs to hear.
        ends: of this process's waiters, with their channels.
        is_post: whether other processes have messages to read.
    """

    wakes: dict[QueueName, int] = msgspec.field(default_factory=dict)
    seen: dict[QueueName, int] = msgspec.field(default_factory=dict)
    ends: list[tuple[str, End]] = msgspec.field(default_factory=list)
    is_post: bool = False

    def add(self, other: Effects) -> None:
        """Take over what another call left."""
        self.wakes.update(other.wakes)
        self.seen.update(other.seen)
        self.ends += other.ends
        self.is_post = self.is_post or other.is_post


class Step(msgspec.Struct):
    """A call's connection, its time, the process it runs in, and its effects."""

    db: sqlite3.Connection
    now: int
    process: str
    effects: Effects

"""The limits of a queue as its operators see and set them."""

from __future__ import annotations

from headrace.fairness import NAME_LIMIT_BYTES, check_limit_name
from headrace.job import check_text
from headrace.limit import limit_key, limit_terms
from headrace.queue_events import QueueEvents
from headrace.storage.base import Limiter, check_has_limits
from headrace.views.limits import QueueGate, QueueLimit


class QueueLimits(QueueEvents):
    """The limits of a queue: a part of `Queue`."""

    def _limiter(self) -> Limiter:
        storage = self._storage()
        check_has_limits(storage)
        return storage

    async def limits(self) -> list[QueueLimit]:
        """Return the limits that the queue knows, by name: those of its tasks, and those set here.

        Raises:
            StorageRefused: the storage has no limits.
        """
        return [QueueLimit.of(self.name, info) for info in await self._limiter().limits(self.name)]

    async def set_limit(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
    ) -> None:
        """Set what a limit allows of each key, over what its tasks declare; at once, and to stay.

        What is said takes the place of all that held: a rate alone has no concurrency beside it.
        Jobs that find room by it start, and with less room no more start until enough have ended.
        Safe to repeat.

        Args:
            name: the limit's; that of a task is the task's own, and with a parameter behind a colon
                where that is the key. It need not be known yet.
            concurrency: most jobs of a key that may be active at once, 1 to 1,000,000.
            rate: how many jobs of a key may start in a time, as ``"10/min"``; see `Limit`.
            burst: how many may start at once after a pause, default as many as the rate has.

        Raises:
            InvalidOption: a value is out of bounds, or neither concurrency nor rate is said.
            StorageRefused: the storage has no limits.
        """
        name = check_limit_name(name)
        terms = limit_terms(concurrency=concurrency, rate=rate, burst=burst)
        await self._limiter().set_limit(self.name, name, terms)

    async def reset_limit(self, name: str) -> None:
        """Let a limit be what its tasks declare again; where none does, it holds nobody up.

        Safe to repeat.

        Raises:
            InvalidOption: the name is not valid.
            StorageRefused: the storage has no limits.
        """
        name = check_limit_name(name)
        await self._limiter().set_limit(self.name, name, None)

    async def gate(self, name: str, key: str | int | None = None) -> QueueGate:
        """Return how one key of a limit stands: how many of its jobs run, and how many wait for it.

        Args:
            name: the limit's.
            key: the value of the parameter that is its key; None: that of jobs without one.

        Raises:
            InvalidOption: the name is not valid.
            InvalidArguments: the key is not.
            StorageRefused: the storage has no limits.
        """
        name = check_text(name, what="limit name", limit_bytes=NAME_LIMIT_BYTES)
        text = limit_key(key, of="key")
        return QueueGate.of(self.name, await self._limiter().gate(self.name, name, text))

"""Asks a storage in a thread until it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.outage import ClientOutage
from headrace.repeat import repeat_blocking
from headrace.storage.blocking import BlockingStorage
from headrace.storage.steps import at_once

T = TypeVar("T")


class BlockingAsker:
    """Makes calls that do no harm when they come twice, each in the thread that asks.

    Args:
        storage: which is asked.
        retry_for_s: how long a call is repeated before its error is raised.

    Attributes:
        outage: hears of each call that is not answered.
    """

    def __init__(self, storage: BlockingStorage, *, retry_for_s: float) -> None:
        self.storage: BlockingStorage = storage
        self.outage: ClientOutage = ClientOutage()
        self._retry_for_s = retry_for_s

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call until it is answered, see `headrace.client.Client.ask`."""

        async def asked() -> T:
            return await call()

        answer = repeat_blocking(
            lambda: at_once(asked()), on_pause=self.outage.waits, for_s=self._retry_for_s
        )
        if self.outage.began_at is not None:
            self.outage.ended()
        return answer

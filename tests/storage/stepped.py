"""A blocking storage behind the port of an asynchronous one, so that the same tests hold for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import anyio

from headrace.storage.base import VERBS, Channel, Storage, Waiter
from headrace.storage.blocking import BlockingStorage
from headrace.storage.connections import Inbox
from headrace.storage.portal import PortalStorage
from headrace.storage.steps import at_once
from headrace.storage.values import End

POLL_S = 0.02


class SteppedStorage:
    """Runs each verb to its end as it is called, and makes channels of inboxes.

    Attributes:
        blocking: the storage that does the work.
    """

    def __init__(self, blocking: BlockingStorage) -> None:
        self.tenant = blocking.tenant
        self.blocking = blocking

    def for_tenant(self, tenant: str) -> Storage:
        return stepped(self.blocking.for_tenant(tenant))

    def open_waiter(self, queue: str, incarnation: str, lane: str) -> Waiter:
        if not isinstance(self.blocking, PortalStorage):
            return self.blocking.open_waiter(queue, incarnation, lane)
        open_one = self.blocking.submit(lambda s: s.open_waiter(queue, incarnation, lane))
        return cast(Waiter, ElsewhereWaiter(self.blocking, open_one.result()))

    def open_channel(self) -> Channel:
        return InboxChannel(self.blocking.open_inbox())

    async def aclose(self) -> None:
        self.blocking.close()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.blocking, name)
        return partial(_run, found) if name in VERBS else found


def stepped(blocking: BlockingStorage) -> Storage:
    """Return a blocking storage as one for an event loop, which it blocks."""
    return cast(Storage, SteppedStorage(blocking))


async def _run(verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return at_once(verb(*args, **options))


class ElsewhereWaiter:
    """A waiter of the loop of another thread."""

    def __init__(self, storage: PortalStorage, waiter: Waiter) -> None:
        self._storage = storage
        self._waiter = waiter

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        return await asyncio.wrap_future(
            self._storage.submit(lambda _: getattr(self._waiter, name)(*args, **options))
        )


class InboxChannel:
    """An inbox as a channel, received from in a thread."""

    def __init__(self, inbox: Inbox) -> None:
        self.name = inbox.name
        self._inbox = inbox
        self._is_connected = False

    async def receive(self) -> End | None:
        if not self._is_connected:
            await anyio.to_thread.run_sync(self._inbox.receive, POLL_S)
            self._is_connected = True
            return None
        while True:
            end = await anyio.to_thread.run_sync(self._inbox.receive, POLL_S)
            if end is not None:
                return end

    async def aclose(self) -> None:
        self._inbox.close()

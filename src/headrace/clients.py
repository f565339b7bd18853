"""The clients of an app, one for each event loop that uses it: connections don't cross loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace import forks
from headrace.client import Client
from headrace.storage.base import Storage


class Held:
    """A loop's client, and how many ``async with`` blocks use it."""

    __slots__ = ("client", "entered")

    def __init__(self, client: Client) -> None:
        self.client: Client = client
        self.entered: int = 0


class Clients:
    """Opens clients on use; `aclose` closes that of the running loop.

    One whose loop has ended was cut off with it, and is forgotten when the next is opened.

    Others in place of `App.clients` have the app open its storage and its clients in another way.

    Args:
        open_storage: returns a storage that is not connected yet; the caller closes it.
        open_client: opens one for the running loop.
    """

    def __init__(
        self, open_storage: Callable[[], Storage], open_client: Callable[[], Client]
    ) -> None:
        self.open_storage: Callable[[], Storage] = open_storage
        self._open_client = open_client
        self._held: dict[asyncio.AbstractEventLoop, Held] = {}
        self._forks = forks.count()

    def current(self) -> Client:
        """Return the client of the running loop."""
        held = self._held.get(asyncio.get_running_loop())
        if held is None or self._forks != forks.count():
            held = self._open()
        return held.client

    def _open(self) -> Held:
        if self._forks != forks.count():
            # Those of the parent are not ours to use or to close.
            self._forks, self._held = forks.count(), {}
        for loop in list(self._held):
            if loop.is_closed():
                self._held.pop(loop, None)
        held = self._held[asyncio.get_running_loop()] = Held(self._open_client())
        return held

    def enter(self) -> None:
        """Note that a block begins in the running loop."""
        self.current()
        self._held[asyncio.get_running_loop()].entered += 1

    async def leave(self) -> None:
        """Note that a block has ended there; the last one closes."""
        held = self._held.get(asyncio.get_running_loop())
        if held is not None:
            held.entered -= 1
            if held.entered <= 0:
                await self.aclose()

    async def aclose(self) -> None:
        """Close the client of the running loop, if this process opened one."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None and self._forks == forks.count():
            await held.client.aclose()

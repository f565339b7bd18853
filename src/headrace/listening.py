"""Hears the messages of a channel, however often its connection is lost."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from headrace.backoff import Backoff
from headrace.errors import StorageError
from headrace.guard import Guard
from headrace.storage.base import Channel
from headrace.storage.values import End


async def listen(
    channel: Channel, on_message: Callable[[End | None], None], *, guard: Guard
) -> None:
    """Pass every message on until this is cancelled, and close the channel then.

    Args:
        channel: whose.
        on_message: called with each, and with None when the channel has connected: messages may
            have been missed before.
        guard: starts it again if ``on_message`` raises.
    """

    async def receive() -> None:
        backoff = Backoff()
        while True:
            try:
                message = await channel.receive()
            except StorageError:
                await backoff.pause()
            else:
                backoff.reset()
                on_message(message)

    try:
        await guard.keep("control", receive)
    finally:
        with anyio.CancelScope(shield=True):
            await channel.aclose()

"""Hears that somebody wants a job of this worker stopped, without waiting for the next beat.

What is heard is only a hint: the beat's answer says which jobs. One that is lost costs a beat's
time at most.
"""

from __future__ import annotations

import anyio

from headrace.backoff import Backoff
from headrace.errors import StorageError
from headrace.storage.base import Inbox
from headrace.worker.beat import Beats


async def obey(inbox: Inbox, beats: Beats) -> None:
    """Beat at once for every message, until this is cancelled."""
    backoff = Backoff()
    try:
        while True:
            try:
                await inbox.receive()
            except StorageError:
                await backoff.pause()
            else:
                backoff.reset()
                beats.hurry()
    finally:
        with anyio.CancelScope(shield=True):
            await inbox.aclose()

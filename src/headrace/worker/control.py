"""Hears that somebody wants a job of this worker stopped, without waiting for the next beat.

What is heard is only a hint: the beat's answer says which jobs. One that is lost costs a beat's
time at most.
"""

from __future__ import annotations

from headrace.backoff import Backoff
from headrace.errors import StorageError
from headrace.storage.base import Channel
from headrace.worker.beat import Beats


async def obey(channel: Channel, beats: Beats) -> None:
    """Beat at once for every message, until this is cancelled; the caller closes the channel."""
    backoff = Backoff()
    while True:
        try:
            await channel.receive()
        except StorageError:
            await backoff.pause()
        else:
            backoff.reset()
            beats.beat_now()

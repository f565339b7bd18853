"""What a storage opens beside its verbs, each on a connection of its own: part of the port.

A channel, an inbox and a waiter wait for what others do; a beater works in another thread.
"""

from __future__ import annotations

from typing import Protocol

from headrace.storage.incarnations import BeatReply, ClaimReply, SlotsAsked
from headrace.storage.values import CallId, End
from headrace.storage.verbs import writes


class Channel(Protocol):
    """A channel of this client that is told of jobs' ends, and of requests to stop.

    Messages may be lost: who waits also looks, after every reconnect and every few seconds.

    Attributes:
        name: unique, without spaces; what `Producer.watch`, ``JobRequest.channel`` and
            ``IncarnationInfo.channel`` take.
    """

    name: str

    async def receive(self) -> End | None:
        """Wait for the next end.

        It connects first, and answers None when it has, as after every reconnect: ends may have
        been missed before. It may be cancelled.

        Raises:
            StorageError: the connection can't be opened or was lost; call again, after a pause.
        """

    async def aclose(self) -> None:
        """Close it; a pending `receive` ends or raises `StorageError`."""


class Inbox(Protocol):
    """A channel for a thread that blocks; one thread uses it at a time.

    Attributes:
        name: as `Channel.name`.
    """

    name: str

    def receive(self, timeout_s: float) -> End | None:
        """Block until the next end, for at most ``timeout_s``.

        It connects first. None: nothing came in time, or it has just connected, also again, so that
        ends may have been missed before: look. An interrupted one connects again.

        Raises:
            StorageError: the connection can't be opened or was lost; call again, after a pause.
        """

    def close(self) -> None:
        """Close it; a later `receive` connects again."""


class Waiter(Protocol):
    """Blocks on the wake-up token of one lane of a queue, for one incarnation.

    A token that was taken is passed on by the incarnation's next `Consumer.claim` of that lane, or
    by whatever ends the incarnation: `Consumer.retire`, `Maintenance.reap`. Waiters of two lanes
    don't take each other's tokens.
    """

    async def wait(self, timeout_s: float) -> bool:
        """Block until there is a token, for at most ``timeout_s``; whether one was taken.

        Callers never cancel it, so that no token is lost on its way: they interrupt it.

        Args:
            timeout_s: 0.01 to 2; other values are taken for the nearest of these.

        Raises:
            StorageError: it can't block just now; look by claiming, and call again later.
        """

    async def claim(self, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        """Claim as `Consumer.claim` does, as soon as the pending `wait` ends, else now.

        A storage that can does it without another round trip. Like any claim, it may be repeated
        with `Consumer.claim` and the same number and nonce, also while this one is pending. It may
        be cancelled, which leaves unknown whether it will claim.

        Raises:
            StorageError: it has not claimed, since the wait was interrupted or for another reason,
                or its answer was lost.
        """

    async def interrupt(self) -> None:
        """End a pending `wait` soon, and every later one at once; return when none is pending."""

    async def aclose(self) -> None:
        """Close its connection."""


class Beater(Protocol):
    """The synchronous side for the beat thread; another one than that of the event loop."""

    @writes(is_durable=False)
    def beat(self, queue: str, incarnation: str) -> BeatReply:
        """Say that an incarnation lives: count its beats one up and note when.

        It names up to 500 of its jobs that were asked to stop, at every beat until their attempts
        end. For an unknown or condemned incarnation it changes nothing and answers ``is_gone``.

        Raises:
            StorageError: not done, or perhaps done, within the time that the beater was given.
        """

    def close(self) -> None:
        """Close its connection."""

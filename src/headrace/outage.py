"""An outage as one client sees it: told once it has lasted a second, and when it is over."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from headrace.backoff import LONGEST_S
from headrace.errors import StorageError
from headrace.events import Emit, StorageRecovered, StorageWaiting
from headrace.guard import log
from headrace.repeat import repeat_until_answered

TOLD_AFTER_S = 1.0

STARTUP_RETRY_S = 10.0
"""How long the storage may be away when a process starts."""


class ClientOutage:
    """What the calls of a client have in common that wait for a storage which is away.

    Args:
        emit: told of it; default: to the log.

    Attributes:
        began_at: when the first call failed, by the monotonic clock; None once one is answered.
    """

    def __init__(self, emit: Emit = log) -> None:
        self._emit = emit
        self._failed_at = 0.0
        self._is_told = False
        self.began_at: float | None = None

    def waits(self, error: StorageError, pause_s: float) -> None:
        """Note a call that was not answered, and is repeated after a pause."""
        now = time.monotonic()
        if self.began_at is None or now - self._failed_at > 2 * LONGEST_S:
            # Nobody has tried for so long that it is another outage.
            self.began_at, self._is_told = now, False
        self._failed_at = now
        # A pause may be longer than a second: it is told before, and not once it is over.
        if not self._is_told and now - self.began_at + pause_s >= TOLD_AFTER_S:
            self._is_told = True
            self._emit(StorageWaiting(error=str(error), waited_ms=_ms(now - self.began_at)))

    def ended(self) -> None:
        """Note that the storage answers."""
        if self.began_at is not None and self._is_told:
            after_ms = _ms(time.monotonic() - self.began_at)
            self._emit(StorageRecovered(queue="", after_ms=after_ms))
        self.began_at, self._is_told = None, False


async def connect(
    check: Callable[[], Awaitable[None]], outage: ClientOutage, *, is_over: Callable[[], bool]
) -> None:
    """See at the start of a process that the storage can be used; wait a while if it is away.

    Args:
        check: the storage's.
        outage: told of it.
        is_over: whether nobody waits any more.

    Raises:
        StorageUnavailable: it could not be reached for `STARTUP_RETRY_S`.
        StorageError: it can't be used.
    """
    await repeat_until_answered(
        check, is_over=is_over, on_pause=outage.waits, for_s=STARTUP_RETRY_S
    )
    outage.ended()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)

"""Pauses between tries of something that is away: exponential, with full jitter, never busy."""

from __future__ import annotations

import random

import anyio

FIRST_S = 0.05
LONGEST_S = 5.0


class Backoff:
    """Grows with every pause until it is reset; one per loop that retries."""

    def __init__(self) -> None:
        self._tries = 0

    def reset(self) -> None:
        """Begin again with short pauses."""
        self._tries = 0

    def next_s(self) -> float:
        """Return the next pause in seconds: 10 ms to a bound that doubles up to 5 s."""
        longest = min(LONGEST_S, FIRST_S * 2 ** min(self._tries, 10))
        self._tries += 1
        return random.uniform(0.01, longest)  # noqa: S311 (spreads load, guards nothing)

    async def pause(self) -> None:
        """Sleep for the next pause."""
        await anyio.sleep(self.next_s())

"""A handler of which no two may run at once, and what it saw."""

from __future__ import annotations

import asyncio


class Site:
    """What the handlers saw, in order, and what they wait for."""

    def __init__(self) -> None:
        self.runs: list[object] = []
        self.active: int = 0
        self.may_end: asyncio.Event = asyncio.Event()

    async def run(self, value: object) -> object:
        """Note what a handler was called with, and end once it may; ``"bad"`` fails."""
        self.runs.append(value)
        self.active += 1
        assert self.active == 1, "two run at once"
        try:
            await self.may_end.wait()
        finally:
            self.active -= 1
        if value == "bad":
            raise ValueError(value)
        return value

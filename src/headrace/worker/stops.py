"""What a worker was asked for: to be quiet, to stop, to stop now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Stops:
    """Takes requests in any thread, in signal handlers, and before there is an event loop.

    Args:
        on_request: called in the loop after each, and once for those that came before it; safe to
            repeat.

    Attributes:
        count: how many have asked for the end. The first gives running jobs the grace, the second
            ends it.
        is_quiet: whether somebody has asked to claim no more.
    """

    def __init__(self, on_request: Callable[[], None]) -> None:
        self.count: int = 0
        self.is_quiet: bool = False
        self._on_request = on_request
        self._loop: asyncio.AbstractEventLoop | None = None
        self._acted_on = 0

    @property
    def is_closing(self) -> bool:
        """Whether the worker is to end."""
        return self.count > 0

    @property
    def is_pressing(self) -> bool:
        """Whether somebody has asked for the end since `acted_on`."""
        return self.count > self._acted_on

    def acted_on(self) -> None:
        """Note that what was asked for was done: the jobs have ended, by a request or not."""
        self._acted_on = max(1, self.count)

    def quiet(self) -> None:
        """Ask to claim no more."""
        self.is_quiet = True
        self._request()

    def stop(self) -> None:
        """Ask for the end."""
        self.count += 1
        self._request()

    def _request(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it was closed: the worker has ended
                self._loop.call_soon_threadsafe(self._on_request)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Pass requests on to the running loop, from those on that came before."""
        self._loop = asyncio.get_running_loop()
        self._on_request()
        try:
            yield
        finally:
            self._loop = None

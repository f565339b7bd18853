"""Numbers of the calls that threads make, so that each may be repeated."""

from __future__ import annotations

import secrets
from collections import defaultdict, deque

from headrace.storage.values import CallId


class CallNumbers:
    """The numbers of one caller at a time: a random client, and a rising number for each queue."""

    __slots__ = ("_client", "_last")

    def __init__(self) -> None:
        self._client = secrets.token_hex(8)
        self._last: defaultdict[str, int] = defaultdict(int)

    def next(self, queue: str) -> CallId:
        """Return the number of the next call to a queue."""
        self._last[queue] = number = self._last[queue] + 1
        return CallId(self._client, number)


class NumberPool:
    """Lends numbers to calls in progress; those that were given back last go first.

    Not one client for each thread: a storage remembers every client for ten minutes, and a server
    may have a thread for each request. Nothing is locked, so that a fork leaves nothing locked.
    """

    def __init__(self) -> None:
        self._free: deque[CallNumbers] = deque()

    def take(self) -> CallNumbers:
        """Return numbers that nobody else uses until they are given back.

        They are not given back after an error: the answer to a call may still be unknown, and then
        its number must not be followed by others.
        """
        try:
            return self._free.pop()
        except IndexError:
            return CallNumbers()

    def give_back(self, numbers: CallNumbers) -> None:
        """Let others have the numbers; all calls that were made with them have been answered."""
        self._free.append(numbers)

"""One caller of a storage: its names and numbers, and what it knows when no answer comes."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

import anyio

from headrace.errors import ReplyLost, StorageUnavailable
from headrace.storage.base import Storage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.values import CallId
from tests.crash.crew import passed
from tests.linearizability.faults import Faults

T = TypeVar("T")

UNTIL_ANSWERED = 200
"""So many repetitions that one of them is answered, however unlucky the caller."""

PAUSE_SECONDS = 0.02


class Answer(NamedTuple, Generic[T]):
    """What came of a call and its repetitions.

    Attributes:
        invoked: when the first was sent, in ns of the monotonic clock, which processes share.
        last: when the last was sent.
        returned: when the answer came, None without one.
        reply: the answer.
        may_have_run: one that was not answered may have been executed: without any answer the
            outcome is unknown. If False, a call without an answer surely had no effect.
    """

    invoked: int
    last: int
    returned: int | None
    reply: T | None
    may_have_run: bool


class Caller:
    """A producer and an incarnation at once, that makes one call after another.

    Args:
        storage: of its own.
        name: unlike that of any other of this queue.
        queue: whose jobs.
        faults: what befalls its calls.
        seed: of its choices.
    """

    def __init__(
        self, storage: Storage, *, name: str, queue: str, faults: Faults, seed: str
    ) -> None:
        self.name = name
        self.queue = queue
        self.storage = storage
        self.random = random.Random(seed)
        self.incarnation = ""
        self._faults = faults
        self._lives = 0
        self._numbers: Counter[tuple[str, str]] = Counter()

    async def ask(
        self, verb: str, send: Callable[[], Awaitable[T]], *, repetitions: int = 0
    ) -> Answer[T]:
        """Call until an answer comes, or the repetitions are used up."""
        invoked = last = time.monotonic_ns()
        may_have_run = False
        for _ in range(1 + repetitions):
            last = time.monotonic_ns()
            try:
                with anyio.move_on_after(self._faults.before(verb)):
                    reply = await send()
                    return Answer(invoked, last, time.monotonic_ns(), reply, may_have_run)
                may_have_run = True  # the caller lost its patience
            except ReplyLost:
                may_have_run = True
            except StorageUnavailable:
                # Nothing was sent, and a client doesn't connect again at once.
                await passed(PAUSE_SECONDS)
        return Answer(invoked, last, None, None, may_have_run)

    async def ask_numbered(
        self, verb: str, send: Callable[[CallId], Awaitable[T]], *, repetitions: int
    ) -> Answer[T]:
        """Call by a new number, and repeat it by the same."""
        client = self.name if verb == "enqueue" else self.incarnation
        self._numbers[client, verb] += 1
        call = CallId(client, self._numbers[client, verb])
        return await self.ask(verb, lambda: send(call), repetitions=repetitions)

    async def register(self) -> None:
        """Begin a new life, under a name that nobody has condemned."""
        self._lives += 1
        self.incarnation = f"{self.name}.{self._lives}"
        worker = IncarnationInfo(
            incarnation=self.incarnation,
            name=self.name,
            host="here",
            pid=0,
            version="0",
            concurrency=1,
            lease_ms=60_000,
            registered_ms=0,
        )
        register = self.storage.register
        answer = await self.ask(
            "register", lambda: register(self.queue, worker), repetitions=UNTIL_ANSWERED
        )
        assert answer.returned is not None, f"{self.incarnation} could not register"

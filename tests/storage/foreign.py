"""Storages as a user might write them: a right one, and two that are wrong in one way each."""

from __future__ import annotations

import itertools
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from headrace.storage import (
    BlockingStorage,
    CallId,
    Claim,
    JobRequest,
    Settlement,
    Storage,
    Verdict,
)
from headrace.storage.portal import PortalStorage
from headrace.storage.sqlite.engine import engines
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract import Subject
from tests.storage.stepped import stepped

SCHEDULER_VERBS = (
    "fire",
    "join_release",
    "leave_release",
    "list_schedules",
    "read_schedules",
    "schedule_history",
    "take_schedules",
    "write_schedules",
)
BULK_READER_VERBS = ("event_lines", "event_place", "event_span")
STRIKER_VERBS = ("lift", "strike", "strikes")
BULK_VERBS = ("commit", "discard", "publish", "read_write", "stage")


class CountingStorage:
    """Passes every verb on to another storage, and counts the calls."""

    def __init__(self, inner: Storage) -> None:
        self.tenant = inner.tenant
        self.calls: Counter[str] = Counter()
        self._inner = inner

    def for_tenant(self, tenant: str) -> CountingStorage:
        other = type(self)(self._inner.for_tenant(tenant))
        other.calls = self.calls
        return other

    def __getattr__(self, verb: str) -> Any:
        self.calls[verb] += 1
        return getattr(self._inner, verb)


class OldStorage(CountingStorage):
    """Knows nothing of schedules, bulk writes and reads, strikes, and why jobs do not run."""

    def __getattr__(self, verb: str) -> Any:
        if verb in (*SCHEDULER_VERBS, *BULK_VERBS, *BULK_READER_VERBS, *STRIKER_VERBS, "why"):
            raise AttributeError(verb)
        return super().__getattr__(verb)


class NonceBlindStorage(CountingStorage):
    """Settles whatever shows the right epoch."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        held = dict(await self._inner.held(queue, call.client))
        shown = []
        for settlement in settlements:
            claim = settlement.claim
            nonce = held.get(settlement.job_id, claim).nonce
            shown.append(msgspec.structs.replace(settlement, claim=Claim(claim.epoch, nonce)))
        return await self._inner.settle(queue, shown, call=call)


class ForgetfulStorage(CountingStorage):
    """Takes every enqueue for a new one."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._numbers = itertools.count(1)

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        own = CallId(call.client, next(self._numbers))
        return await self._inner.enqueue(queue, jobs, call=own)


class ForeignSubject(Subject):
    """One of them in memory; what else the contract asks for is by default."""

    def __init__(self, kind: type[CountingStorage]) -> None:
        self._now = time.time_ns() // 1_000_000
        url = f"memory://foreign-{secrets.token_hex(6)}"
        inner = SqliteStorage(url, clock=lambda: self._now).for_tenant("acme")
        self._place = inner.place
        self.counting = kind(inner)
        self.storage = cast(Storage, self.counting)

    async def advance(self, ms: int) -> int:
        self._now += ms
        return self._now

    async def aclose(self) -> None:
        await self.storage.aclose()
        engines.discard(self._place)


class PortalSubject(ForeignSubject):
    """The right one in a thread of its own, for code without an event loop."""

    def __init__(self) -> None:
        super().__init__(CountingStorage)
        portal = PortalStorage(lambda: cast(Storage, self.counting), "acme")
        self.storage = stepped(cast(BlockingStorage, portal))

"""The role of what runs jobs, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from headrace.job import Claim
from headrace.storage.base import Beater, Waiter
from headrace.storage.incarnations import ClaimReply, IncarnationInfo, SlotsAsked
from headrace.storage.sqlite.blocking import SqliteBeater, SqliteWaiter
from headrace.storage.sqlite.engine.engines import attach
from headrace.storage.sqlite.roles.role import SqliteRole
from headrace.storage.sqlite.verbs import incarnations, output
from headrace.storage.sqlite.verbs.claim import claim
from headrace.storage.sqlite.verbs.settle import settle
from headrace.storage.values import CallId, Report, Settlement


class SqliteConsumer(SqliteRole):
    """What runs jobs."""

    async def register(self, queue: str, worker: IncarnationInfo) -> None:
        await self._do("register", lambda s: incarnations.register(s, self._name(queue), worker))

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        # A claim that a power loss undoes took its worker along: the job just waits again.
        return await self._do("claim", lambda s: claim(s, self._name(queue), call, nonce, slots))

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        return await self._do("settle", lambda s: settle(s, self._name(queue), settlements, call))

    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        await self._do("put_back", lambda s: incarnations.put_back(s, self._name(queue), jobs))

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        name = self._name(queue)
        return await self._do("report", lambda s: output.report(s, name, reports))

    async def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        return await self._do(
            "held", lambda s: incarnations.held(s, self._name(queue), incarnation)
        )

    async def retire(self, queue: str, incarnation: str) -> int:
        return await self._do(
            "retire", lambda s: incarnations.retire(s, self._name(queue), incarnation)
        )

    def open_waiter(self, queue: str, incarnation: str, lane: str) -> Waiter:
        return SqliteWaiter(
            self.engine(), self._name(queue), lane, self.clock, claim=partial(self.claim, queue)
        )

    def open_beater(self, *, timeout_s: float) -> Beater:
        return SqliteBeater(attach(self.place), self.tenant, self.clock, timeout_s=timeout_s)

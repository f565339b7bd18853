"""Embedded storages whose strikes are wrong in one way each, which the machine must find out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.outcome import Struck
from headrace.storage.incarnations import ClaimReply, SlotsAsked
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId, Settlement
from headrace.strike import Strike, StrikeAction
from tests.model.gate_mutants import SpoilsGates


class StrikesNobody(SqliteStorage):
    """Sets no strike of a task."""

    async def strike(self, queue: str, strike: Strike) -> None:
        if strike.where:
            await super().strike(queue, strike)


class StrikesOthersToo(SqliteStorage):
    """Takes every task for the one that is struck."""

    async def strike(self, queue: str, strike: Strike) -> None:
        other = "send" if strike.task == "other" else strike.task
        await super().strike(queue, msgspec.structs.replace(strike, task=other))


class CancelsWhatIsToWait(SqliteStorage):
    """Ends every job that a strike meets."""

    async def strike(self, queue: str, strike: Strike) -> None:
        cancels = msgspec.structs.replace(strike, action=StrikeAction.CANCEL)
        await super().strike(queue, cancels)


class LiftsAndOpensNothing(SpoilsGates):
    """Leaves those in the line of a strike that is lifted."""

    async def lift(self, queue: str, strike_id: str) -> bool:
        await self.spoil("lift", "UPDATE jobs SET parked = parked || '!' WHERE parked IS NOT NULL")
        lifted = await super().lift(queue, strike_id)
        await self.spoil(
            "lift", "UPDATE jobs SET parked = rtrim(parked, '!') WHERE parked IS NOT NULL"
        )
        return lifted


class LetsTheLastGoFirst(SpoilsGates):
    """Turns the line of a strike round as it is lifted."""

    async def lift(self, queue: str, strike_id: str) -> bool:
        await self.spoil("lift", "UPDATE jobs SET number = -number WHERE parked IS NOT NULL")
        return await super().lift(queue, strike_id)


class TellsOfNoChange(SqliteStorage):
    """Tells one version of strikes with conditions, whatever these are."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        reply = await super().claim(queue, call=call, nonce=nonce, slots=slots)
        return msgspec.structs.replace(reply, strikes=min(1, reply.strikes))


class PutsStruckJobsBack(SqliteStorage):
    """Returns what is struck by its arguments to the head of its queue."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        changed = [
            msgspec.structs.replace(one, outcome=Struck("strike:9"))
            if isinstance(one.outcome, Struck)
            else one
            for one in settlements
        ]
        return await super().settle(queue, changed, call=call)


STRIKE_MUTANTS = (
    StrikesNobody,
    StrikesOthersToo,
    CancelsWhatIsToWait,
    LiftsAndOpensNothing,
    LetsTheLastGoFirst,
    TellsOfNoChange,
    PutsStruckJobsBack,
)
"""Each is wrong in one way."""

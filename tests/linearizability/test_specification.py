"""The specification of one job says what the model of the whole storage says, and no more."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest

from headrace.storage.base import Storage
from headrace.storage.sqlite.storage import SqliteStorage
from tests.linearizability.faults import NoFaults
from tests.linearizability.history import Line
from tests.linearizability.runner import NOW_MS, TENANT, Kind, Plan, Told, look, run_clients
from tests.linearizability.spec import Claimed
from tests.model.model import Model

HISTORIES = 100


class ModelStorage:
    """The model with the verbs of a storage; callers take turns."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **named: Any) -> Any:
            await asyncio.sleep(0)
            reply = getattr(self._model, verb)(*args, **named)
            for q in self._model.queues.values():
                self._model.close_gates(q)
            return reply

        return call


async def recorded(plan: Plan, storage: Storage) -> list[Told]:
    """Return what the clients of a history see when nothing goes wrong."""
    lines = await run_clients(plan, {name: (storage, NoFaults()) for name in plan.names})
    return [*lines, *await look(plan, storage)]


@pytest.mark.parametrize("kind", ["jobs", "order", "schedules", "limits"])
async def test_histories_of_the_model_have_an_explanation(kind: Kind) -> None:
    found = []
    for number in range(HISTORIES):
        plan = Plan(kind, number, seed=1)
        storage = cast("Storage", ModelStorage(Model(NOW_MS)))
        found += plan.problems(await recorded(plan, storage))
    assert not found, "\n\n".join(found)


async def test_one_false_answer_in_a_recorded_history_is_found() -> None:
    """What the clients record is enough to see a lie: here of any claim, about its epoch."""
    storage = SqliteStorage(
        f"memory://test-{secrets.token_hex(6)}", clock=lambda: NOW_MS
    ).for_tenant(TENANT)
    plan = Plan("jobs", 3, seed=1)
    lines = await recorded(plan, storage)
    await storage.aclose()
    assert plan.problems(lines) == []
    claims = [n for n, x in enumerate(lines) if isinstance(getattr(x, "reply", None), Claimed)]
    assert claims
    for n in claims:
        line = lines[n]
        assert isinstance(line, Line)
        assert isinstance(line.reply, Claimed)
        reply = msgspec.structs.replace(line.reply, epoch=line.reply.epoch + 100)
        false = [*lines[:n], msgspec.structs.replace(line, reply=reply), *lines[n + 1 :]]
        assert len(plan.problems(false)) == 1

"""``handle.why()`` where there are more workers than it looks at: it says no more than it saw."""

from __future__ import annotations

import secrets
from contextlib import aclosing

import msgspec

from headrace import Why
from headrace.storage import Storage, open_storage
from headrace.testing.contract.steps import QUEUE, ContractClient, ContractIncarnation, a_job


async def told(storage: Storage, *, has_more: bool) -> str:
    """Return the text of the only reason."""
    situation = await storage.why(QUEUE, "x")
    assert situation is not None
    said = msgspec.structs.replace(situation, has_more_workers=has_more)
    [reason] = Why.of(said).reasons
    return reason.text


async def test_of_some_workers_it_says_that_there_are_others() -> None:
    async with aclosing(open_storage(f"memory://why-{secrets.token_hex(6)}")) as storage:
        await ContractClient(storage).enqueue(a_job("x", lane="gpu"))
        assert await told(storage, has_more=False) == "No worker of queue mail is alive."
        assert await told(storage, has_more=True) == (
            "None of 500 workers of queue mail that were looked at is alive."
        )
        for name in ("w1", "w2"):
            await ContractIncarnation(storage, name).register()
        assert await told(storage, has_more=False) == (
            "No live worker of queue mail has a slot of lane gpu, which it needs: 2 are alive."
        )
        assert await told(storage, has_more=True) == (
            "None of 2 live workers of queue mail that were looked at has a slot of lane gpu, "
            "which it needs."
        )

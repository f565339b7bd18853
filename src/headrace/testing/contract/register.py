"""Contract of ``register``."""

from __future__ import annotations

import msgspec

from headrace.storage import Beat, Storage
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    QUEUE,
    Incarnation,
)


class RegisterContract(Contract):
    """Tests of ``register``."""

    async def test_a_registered_incarnation_shows_what_it_said_of_itself(
        self, storage: Storage, advance: Advance
    ) -> None:
        now = await advance(0)
        worker = await Incarnation(storage, "w1", lease_ms=9_000).register()
        assert await storage.workers(QUEUE) == [
            msgspec.structs.replace(worker.info, registered_ms=now, active=0)
        ]
        assert await storage.beats(QUEUE) == {
            "w1": Beat(count=0, lease_ms=9_000, is_condemned=False)
        }
        assert await storage.queues() == [QUEUE]
        assert (await storage.stats(QUEUE)).workers == 1

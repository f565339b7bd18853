"""Contract of ``configure``; what the bounds do is in ``test_prune``."""

from __future__ import annotations

from headrace.storage import QueueSettings, SettingChanges, Storage
from headrace.testing.contract.fixtures import Contract
from headrace.testing.contract.steps import (
    QUEUE,
    ContractIncarnation,
)


class ConfigureContract(Contract):
    """Tests of ``configure``."""

    async def test_settings_are_kept_and_shown(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        changes = SettingChanges(
            history=7,
            dead_letters=6,
            dead_letter_ttl_ms=5,
            events=4,
            events_cap=3,
            on_failed="mourn",
            max_active=2,
            max_length=1,
            weight=8,
            aging=9,
        )
        assert set(changes) == set(QueueSettings.__struct_fields__)
        await storage.configure(QUEUE, **changes)
        assert (await storage.stats(QUEUE)).settings == QueueSettings(**changes)

    async def test_what_is_not_named_stays(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        await storage.configure(QUEUE, history=7)
        await storage.configure(QUEUE, on_failed="mourn", aging=9, max_active=2)
        await storage.configure(QUEUE, aging=8)
        found = (await storage.stats(QUEUE)).settings
        assert found == QueueSettings(history=7, on_failed="mourn", max_active=2, aging=8)

    async def test_a_claim_tells_the_weight_that_is_set(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        assert (await worker.ask()).weight == 0
        await storage.configure(QUEUE, weight=3)
        assert (await worker.ask()).weight == 3
        await storage.configure(QUEUE, weight=0)
        assert (await worker.ask()).weight == 0

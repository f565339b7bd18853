"""Contract of ``configure``; what the bounds do is in ``test_prune``."""

from __future__ import annotations

from headrace.storage.base import QueueSettings, Storage
from tests.storage.steps import (
    QUEUE,
    Incarnation,
)


async def test_settings_are_kept_and_shown(storage: Storage, worker: Incarnation) -> None:
    settings = QueueSettings(history=7, dead_letters=6, dead_letter_ttl_ms=5, events=4)
    await storage.configure(QUEUE, settings)
    assert (await storage.stats(QUEUE)).settings == settings

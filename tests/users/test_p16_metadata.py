"""P16: what a package index shows says what the package runs on, and leads somewhere."""

from __future__ import annotations

from hatchling.metadata.core import ProjectMetadata

from tests.support.processes import ROOT


def test_p16_the_summary_has_every_storage_and_there_is_a_way_on() -> None:
    core = ProjectMetadata(str(ROOT), None).core
    assert all(name in core.description for name in ("asyncio", "Redis", "Valkey", "SQLite"))
    assert core.urls

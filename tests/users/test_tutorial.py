"""docs/tutorial.md, followed from its top to its end on each storage that processes can share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ports import held_port
from tests.support.processes import ROOT
from tests.support.walkthrough import Walkthrough


@pytest.mark.parametrize("kind", ["file", pytest.param("redis", marks=pytest.mark.slow)])
async def test_the_tutorial_works_as_it_is_written(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("redis_url") if kind == "redis" else f"file://{tmp_path}/jobs"
    port, holder = held_port()
    replaced = {
        "localhost:8000": f"127.0.0.1:{port}",
        "shop.web:api": f"shop.web:api --port {port}",
    }
    env = {"HEADRACE_URL": url}
    with (
        holder,
        Walkthrough(ROOT / "docs" / "tutorial.md", tmp_path, env=env, replaced=replaced) as reader,
    ):
        await reader.follow()

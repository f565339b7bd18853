"""A cluster of two hosts which makes a second attempt of what is slow: who loses goes on writing.

The first attempt of a partition waits until the write has returned, and then has the rest of its
rows written, if Spark does not end it before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.spark.support.bare import without_headrace
from tests.spark.support.drivers import Driver
from tests.spark.support.gates import Gate
from tests.spark.support.rows import once, queued, take_rows
from tests.spark.support.servers import Cluster
from tests.support.redis_server import RedisServer
from tests.support.until import until

ROWS = 8_000
OF_EXECUTORS = "SPARK_EXECUTOR_DIRS"
"""A variable that workers of a cluster set for the executors that they start."""


class Way(NamedTuple):
    """How rows are written, and whether each is there once then."""

    has_ids: bool
    options: dict[str, Any]
    is_once: bool = True


WAYS = {
    "direct-column": Way(has_ids=True, options={"commit": "direct"}),
    "atomic-column": Way(has_ids=True, options={"commit": "atomic"}),
    "atomic-random": Way(has_ids=False, options={"commit": "atomic"}),
    # What is refused unless one asks for it: that these are twice shows that the others could be.
    "direct-random": Way(
        has_ids=False, options={"commit": "direct", "allowRandomIds": True}, is_once=False
    ),
}


def attempts_at(gate: Gate) -> int:
    """Return how many attempts have come to a gate, or were told to pass it."""
    path = Path(gate.path)
    return len(list(path.parent.glob(f"{path.name}.attempt-*")))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run one cluster for the tests of this module."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_each_row_is_there_once_whatever_the_attempt_that_lost_still_writes(
    cluster: Cluster, redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        gates = [stack.enter_context(Gate(tmp_path / tenant)) for tenant in WAYS]
        writes = [
            {"rows": ROWS, "tenant": tenant, "gate": gate.path, **way._asdict()}
            for (tenant, way), gate in zip(WAYS.items(), gates, strict=True)
        ]
        program = Driver.start(
            "speculate", tmp_path, master=cluster.master, url=redis_url, writes=writes
        )
        driver = stack.enter_context(program)
        for done, (tenant, way) in enumerate(WAYS.items()):
            await driver.tells("written", done + 1)
            assert attempts_at(gates[done]) == 2
            if way.is_once:
                assert await queued(redis_url, tenant=tenant) == ROWS
            gates[done].open()
        await until(lambda: not cluster.python_workers, within=60)
    for tenant, way in WAYS.items():
        found = await take_rows(redis_url, tenant=tenant)
        assert found.keys() == once(ROWS).keys()
        assert (found == once(ROWS)) == way.is_once, tenant
    with redis_server.client() as client:
        stages = client.keys("hr:*:stage:*")
        assert {key.partition(b"{")[2].partition(b":")[0] for key in stages} <= {
            b"atomic-column",
            b"atomic-random",
        }
        assert all(client.pttl(key) > 0 for key in stages)


@pytest.mark.slow
async def test_executors_without_headrace_say_what_to_do(
    cluster: Cluster, redis_url: str, tmp_path: Path
) -> None:
    path = str(without_headrace(tmp_path / "bare", where=OF_EXECUTORS))
    with Driver.start(
        "write_elsewhere", tmp_path, master=cluster.master, url=redis_url, path=path
    ) as driver:
        [told] = await driver.tells("failed")
    assert f"ModuleNotFoundError: headrace is not installed for {sys.executable}" in told["error"]
    assert "addArtifacts" in told["error"]

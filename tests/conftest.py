"""The Redis server that the tests of a process share, and an app on each kind of storage."""

from __future__ import annotations

import gc
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest

from headrace import App
from tests.support.redis_server import RedisServer

# On a busy machine an example takes as long as it takes. Draws are the same at every run of the
# same sources, so that what they find holds up nobody who changes something else.
hypothesis.settings.register_profile("new-draws", deadline=None)
hypothesis.settings.register_profile("same-draws", deadline=None, derandomize=True)
hypothesis.settings.load_profile("same-draws")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Make ``-n auto`` one more than there are cores: a third of the time tests wait."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Take the tests themselves out of the garbage collector's sight: its runs are shorter then."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Run one server for this process; a test that breaks its server starts one of its own."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """Return the address of this process's server, emptied; loaded functions stay."""
    with redis_server.client() as client:
        client.flushall()
    return redis_server.url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what takes `storage_url` on every kind; on Redis alone what looks at the server too."""
    if "storage_url" in metafunc.fixturenames:
        is_redis = {"redis_server", "redis_url"} & set(metafunc.fixturenames)
        kinds = ["redis"] if is_redis else ["redis", "memory", "file"]
        metafunc.parametrize("storage_url", kinds, indirect=True)


@pytest.fixture
def storage_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty storage of the kind that the test is run with."""
    if request.param == "memory":
        return f"memory://test-{secrets.token_hex(6)}"
    if request.param == "file":
        return f"file://{tmp_path}/data"
    url: str = request.getfixturevalue("redis_url")
    return url


@pytest.fixture
async def app(storage_url: str) -> AsyncIterator[App[None]]:
    """Return an app on an empty storage with a tenant of its own; closed at the end."""
    async with App(storage_url, tenant=f"test-{secrets.token_hex(6)}") as app:
        yield app

"""The embedded storage alone, and a look behind its back."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace.storage.sqlite.storage import SqliteStorage
from tests.storage.conftest import SqliteSubject, in_order


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory that is not there yet."""
    return tmp_path / "data"


@pytest.fixture(params=["memory", "file"])
async def subject(request: pytest.FixtureRequest, directory: Path) -> AsyncIterator[SqliteSubject]:
    """Open an empty storage, and see at the end that it is in order."""
    url = f"memory://test-{secrets.token_hex(6)}"
    async with in_order(
        SqliteSubject(f"file://{directory}" if request.param == "file" else url)
    ) as s:
        assert isinstance(s, SqliteSubject)
        yield s


@pytest.fixture
async def file_storage(directory: Path) -> AsyncIterator[SqliteStorage]:
    """Return a storage in a directory."""
    storage = SqliteStorage(f"file://{directory}").for_tenant("acme")
    yield storage
    await storage.aclose()


@pytest.fixture
async def elsewhere(directory: Path) -> AsyncIterator[SqliteStorage]:
    """Return one on the same directory that shares nothing with the first but the files."""
    storage = SqliteStorage(f"file://{directory}?sync=normal").for_tenant("acme")
    yield storage
    await storage.aclose()

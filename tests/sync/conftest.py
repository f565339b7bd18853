"""A sync app on each kind of storage."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from headrace import SyncApp


@pytest.fixture
def app(storage_url: str) -> Iterator[SyncApp[None]]:
    """Return a sync app on an empty storage with a tenant of its own; closed at the end."""
    with SyncApp(storage_url, tenant=f"test-{secrets.token_hex(6)}") as app:
        yield app

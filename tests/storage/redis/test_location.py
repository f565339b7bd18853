"""How messages name a server."""

from __future__ import annotations

import pytest

from headrace.storage.redis.location import location_of


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("redis://", "localhost:6379"),
        ("redis://worker:s3cret@db1:6380/2", "db1:6380"),
        ("rediss://:s3cret@db1", "db1:6379"),
        ("unix://:s3cret@/run/redis.sock?db=2", "/run/redis.sock"),
    ],
)
def test_a_server_is_named_without_its_secrets(url: str, where: str) -> None:
    assert location_of(url).where == where

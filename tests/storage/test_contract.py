"""Our own storages keep the contract that anybody's must."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from headrace.testing.contract import StorageContract, Subject
from tests.storage.conftest import RedisSubject, SqliteSubject
from tests.support.redis_server import RedisServer


class TestRedis(StorageContract):
    @pytest.fixture
    def subject(self, redis_server: RedisServer) -> Subject:
        with redis_server.client() as client:
            client.flushall()
        return RedisSubject(redis_server.url)


class TestBlockingRedis(StorageContract):
    @pytest.fixture
    def subject(self, redis_server: RedisServer) -> Subject:
        with redis_server.client() as client:
            client.flushall()
        return RedisSubject(redis_server.url, is_blocking=True)


class TestMemory(StorageContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return SqliteSubject(f"memory://test-{secrets.token_hex(6)}")


class TestFile(StorageContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        return SqliteSubject(f"file://{tmp_path}/data")


class TestBlockingMemory(StorageContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return SqliteSubject(f"memory://test-{secrets.token_hex(6)}", is_blocking=True)


@pytest.mark.slow
class TestBlockingFile(StorageContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        return SqliteSubject(f"file://{tmp_path}/data", is_blocking=True)

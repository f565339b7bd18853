"""The storage on Redis or Valkey: its roles over one shared connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import ClassVar, Self

from headrace.job import DEFAULT_TENANT, check_name
from headrace.storage.connections import Inbox
from headrace.storage.redis.blocking import RedisInbox
from headrace.storage.redis.blocking_client import BlockingClient
from headrace.storage.redis.client import Address, AsyncClient
from headrace.storage.redis.library import Library, library
from headrace.storage.redis.roles.admin import RedisAdmin
from headrace.storage.redis.roles.bulk_reader import RedisBulkReader
from headrace.storage.redis.roles.bulk_writer import RedisBulkWriter
from headrace.storage.redis.roles.consumer import RedisConsumer
from headrace.storage.redis.roles.doctor import RedisDoctor
from headrace.storage.redis.roles.inspector import RedisInspector
from headrace.storage.redis.roles.limiter import RedisLimiter
from headrace.storage.redis.roles.maintenance import RedisMaintenance
from headrace.storage.redis.roles.producer import RedisProducer
from headrace.storage.redis.roles.scheduler import RedisScheduler
from headrace.storage.redis.roles.striker import RedisStriker
from headrace.storage.redis.runner import Runner
from headrace.storage.redis.shared import Shared
from headrace.storage.steps import at_once


class RedisStorage(
    RedisProducer,
    RedisConsumer,
    RedisMaintenance,
    RedisInspector,
    RedisAdmin,
    RedisLimiter,
    RedisStriker,
    RedisScheduler,
    RedisBulkWriter,
    RedisBulkReader,
    RedisDoctor,
):
    """Every verb on one server, for one event loop.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
        allow_eviction: use a server that may evict keys.
        source: the function library, another one for tests.

    Raises:
        InvalidOption: the URL can't be read.
    """

    _client_type: ClassVar[type[AsyncClient | BlockingClient]] = AsyncClient

    def __init__(
        self, url: str, *, allow_eviction: bool = False, source: Library | None = None
    ) -> None:
        self.tenant: str = DEFAULT_TENANT
        self.joined: Runner | None = None
        address = Address(url)
        client = self._client_type(address, source or library(), allow_eviction=allow_eviction)
        self.shared: Shared = Shared(address, client)

    def for_tenant(self, tenant: str) -> Self:
        """Return the storage of another tenant over the same connections."""
        other = copy(self)
        other.tenant = check_name(tenant, what="tenant")
        other.joined = None
        return other

    async def aclose(self) -> None:
        """Leave the connection, which ends with its last user."""
        self.joined = None
        await self.shared.leave(self)


class BlockingRedisStorage(RedisStorage):
    """Every verb on one server, for any number of threads; see `BlockingStorage`.

    Args and what it raises are those of `RedisStorage`.
    """

    _client_type = BlockingClient

    def open_inbox(self) -> Inbox:
        """Return a new inbox; it connects on first use."""
        return RedisInbox(self.shared.address, self.tenant)

    @contextmanager
    def in_line(self) -> Iterator[Self]:
        """Return the same storage for one thread, whose calls go out in order on one connection."""
        client = self._client
        assert isinstance(client, BlockingClient)  # noqa: S101
        other = copy(self)
        with client.in_line() as other.joined:
            yield other

    def close(self) -> None:
        """Leave the connections, which end with their last user."""
        at_once(self.aclose())

"""The storage on Redis or Valkey: its roles over one shared connection."""

from __future__ import annotations

from copy import copy
from typing import Self

from headrace.job import DEFAULT_TENANT, check_name
from headrace.storage.redis.client import Address, AsyncClient
from headrace.storage.redis.library import Library, library
from headrace.storage.redis.roles.admin import RedisAdmin
from headrace.storage.redis.roles.consumer import RedisConsumer
from headrace.storage.redis.roles.doctor import RedisDoctor
from headrace.storage.redis.roles.inspector import RedisInspector
from headrace.storage.redis.roles.maintenance import RedisMaintenance
from headrace.storage.redis.roles.producer import RedisProducer
from headrace.storage.redis.roles.scheduler import RedisScheduler
from headrace.storage.redis.shared import Shared


class RedisStorage(
    RedisProducer,
    RedisConsumer,
    RedisMaintenance,
    RedisInspector,
    RedisAdmin,
    RedisScheduler,
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

    def __init__(
        self, url: str, *, allow_eviction: bool = False, source: Library | None = None
    ) -> None:
        self.tenant: str = DEFAULT_TENANT
        address = Address(url)
        client = AsyncClient(address, source or library(), allow_eviction=allow_eviction)
        self.shared: Shared = Shared(address, client)

    def for_tenant(self, tenant: str) -> Self:
        """Return the storage of another tenant over the same connection."""
        other = copy(self)
        other.tenant = check_name(tenant, what="tenant")
        other.joined = None
        return other

    async def aclose(self) -> None:
        """Leave the connection, which ends with its last user."""
        self.joined = None
        await self.shared.leave(self)

"""A connection that breaks while it is being opened: no call was on its way yet."""

from __future__ import annotations

import pytest

from headrace.errors import StorageUnavailable
from headrace.storage.redis.storage import RedisStorage
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


async def test_a_call_that_was_never_sent_is_not_told_to_be_lost(redis_server: RedisServer) -> None:
    """The server is asked what it is before the first call, and that answer gets lost."""
    async with Proxy(redis_server.port) as proxy:
        lost = proxy.drop_next_reply(after=b"INFO")
        storage = RedisStorage(proxy.url).for_tenant("acme")
        try:
            with pytest.raises(StorageUnavailable, match=f"^Redis at 127.0.0.1:{proxy.port}: "):
                await storage.cancel("mail", ["x"])
            assert lost.is_set()
            # The next caller, who comes before another attempt to connect, hears the same.
            with pytest.raises(StorageUnavailable):
                await storage.cancel("mail", ["x"])
        finally:
            await storage.aclose()

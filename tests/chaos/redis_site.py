"""A run on Redis: a server with an append-only file, and a proxy before it for each member."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from tests.chaos.crew import PRODUCERS, READERS, WORKERS, Crew
from tests.chaos.settings import Settings
from tests.chaos.site import Site
from tests.support.leaks import problems
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


class RedisSite(Site):
    """A server of its own.

    Attributes:
        server: the server.
        proxies: by member.
        is_away: whether a fault has taken the server away.
        turn: of the fault that does.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        super().__init__(settings, directory)
        self.crew = Crew(settings, directory, None)
        self.proxies: dict[str, Proxy] = {}
        self.is_away = False
        self.turn = asyncio.Lock()
        self._crashes: list[str] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        # A reply follows the write to the file, so that a killed server has lost nothing.
        arguments = ("--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
        self.server = self._stack.enter_context(RedisServer(*arguments, appendonly=True))
        for name in (*WORKERS, *PRODUCERS, *READERS):
            self.proxies[name] = await self._stack.enter_async_context(Proxy(self.server.port))
        self._stack.callback(self.crew.close)
        await self.start(lambda name: self.proxies[name].url)
        return self

    async def __aexit__(self, *_: object) -> None:
        (self.directory / "redis.log").write_text(self.server.log)
        await self._stack.aclose()

    @property
    def url(self) -> str:
        return self.server.url

    def problems(self) -> list[str]:
        with self.server.client() as client:
            return problems(client)

    def forget_events(self) -> None:
        with self.server.client() as client:
            for key in client.scan_iter("*:events"):
                client.delete(key)

    def memory(self) -> int:
        with self.server.client() as client:
            return int(client.info("memory")["used_memory"])

    async def heal(self) -> None:
        for proxy in self.proxies.values():
            proxy.delay = 0.0
            proxy.is_sliced = False
            proxy.flow()
            await proxy.admit()
        with self.server.client() as client:
            client.config_set("maxmemory", 0)

    def crashes(self) -> list[str]:
        if not self.is_away and not self.server.is_running:
            self._crashes.append(f"redis-server: {self.server.log[-2000:]}")
            self.server.kill()
            self.server.start()
        return self._crashes

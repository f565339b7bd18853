"""What the storages of all tenants share that were made from one address."""

from __future__ import annotations

from weakref import WeakSet

from headrace.storage.redis.client import Address, AsyncClient


class Shared:
    """The way to one server, which ends with the last of the storages that use it.

    Args:
        address: of the server.
        client: for calls; its one connection is shared.

    Attributes:
        introduced: roots of queues that were put on their tenant's list a short while ago.
    """

    def __init__(self, address: Address, client: AsyncClient) -> None:
        self.address: Address = address
        self.client: AsyncClient = client
        self.introduced: set[str] = set()
        # One that nobody has any more, and nobody closed, must not keep the connection open.
        self._users: WeakSet[object] = WeakSet()

    def join(self, storage: object) -> AsyncClient:
        """Return the client, which stays connected until this storage has left."""
        self._users.add(storage)
        return self.client

    async def leave(self, storage: object) -> None:
        """Close the connection if no other storage uses it."""
        self._users.discard(storage)
        if not self._users:
            await self.client.aclose()

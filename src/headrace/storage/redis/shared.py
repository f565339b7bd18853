"""What the storages of all tenants share that were made from one address."""

from __future__ import annotations

import time
from weakref import WeakSet

from headrace.storage.redis.client import Address
from headrace.storage.redis.runner import Runner

INTRODUCED_FOR_S = 30.0
"""How long a queue is taken for listed once it was put on the tenant's list."""


class Shared:
    """The way to one server, which ends with the last of the storages that use it.

    Args:
        address: of the server.
        client: for calls; what it has open is shared.
    """

    def __init__(self, address: Address, client: Runner) -> None:
        self.address: Address = address
        self.client: Runner = client
        self._introduced: dict[str, float] = {}
        self._tidy_at = 0.0
        # One that nobody has any more, and nobody closed, must not keep the connection open.
        self._users: WeakSet[object] = WeakSet()

    def is_introduced(self, root: str) -> bool:
        """Whether a queue was put on its tenant's list a short while ago."""
        return self._introduced.get(root, 0.0) > time.monotonic()

    def introduce(self, root: str) -> None:
        """Note that it was just now; the list may be lost, so that this holds for a while."""
        now = time.monotonic()
        if now > self._tidy_at:
            self._tidy_at = now + INTRODUCED_FOR_S
            known = self._introduced.copy()  # another thread may add one
            self._introduced = {name: until for name, until in known.items() if until > now}
        self._introduced[root] = now + INTRODUCED_FOR_S

    def forget(self, root: str) -> None:
        """Note that a queue was struck from the list."""
        self._introduced.pop(root, None)

    def join(self, storage: object) -> Runner:
        """Return the client, which stays connected until this storage has left."""
        self._users.add(storage)
        return self.client

    async def leave(self, storage: object) -> None:
        """Close the connection if no other storage uses it."""
        self._users.discard(storage)
        if not self._users:
            await self.client.aclose()

"""What the roles of one storage stand on: whose queues, and the way to the server."""

from __future__ import annotations

from contextlib import suppress

from headrace.errors import StorageFull
from headrace.storage.redis import keys
from headrace.storage.redis.calls.producer import introduce
from headrace.storage.redis.runner import Runner
from headrace.storage.redis.shared import Shared


class RedisRole:
    """What all roles need.

    Attributes:
        tenant: whose queues.
        shared: the way to the server, for this tenant and others.
        joined: the client, while this storage is a user of its connections.
    """

    tenant: str
    shared: Shared
    joined: Runner | None

    @property
    def _client(self) -> Runner:
        """The client; from the first use on, this storage is a user of its connections."""
        if self.joined is None:
            self.joined = self.shared.join(self)
        return self.joined

    def _root(self, queue: str) -> str:
        return keys.root(self.tenant, queue)

    async def _introduce(self, queue: str) -> None:
        """Put the queue on the tenant's list, which is in another slot than the queue itself.

        The list may be lost while this process lives, so that the next call after a while says it
        again.
        """
        await self._client.prepare(introduce(self.tenant, queue))
        self.shared.introduce(self._root(queue))

    async def _introduce_if_room(self, queue: str) -> None:
        """Do the same for those who drain it: a full server takes no new name, and must go on.

        Producers, or a call when there is room again, leave the name.
        """
        with suppress(StorageFull):
            await self._introduce(queue)

"""What stands beside the verbs: the wait for a token, the channel of a client, and the beat.

Each has a connection of its own, since a blocked or subscribed connection can do nothing else.
"""

from __future__ import annotations

import asyncio
import secrets

import anyio

from headrace.errors import StorageError, StorageUnavailable
from headrace.guard import Drops
from headrace.storage.incarnations import BeatReply, ClaimReply, SlotsAsked
from headrace.storage.redis import keys
from headrace.storage.redis.blocking_client import BlockingClient
from headrace.storage.redis.calls import consumer
from headrace.storage.redis.calls.producer import read_end
from headrace.storage.redis.client import Address
from headrace.storage.redis.connection import Connection, Subscription
from headrace.storage.redis.runner import Runner
from headrace.storage.redis.socket import SubscribedSocket
from headrace.storage.steps import at_once
from headrace.storage.values import CallId, End

LONGEST_BLOCK_S = 2.0


class RedisWaiter:
    """Blocks in BLMOVE from a lane's wake-up list to the queue's list of tokens that were taken.

    Nobody reads that one, and each claim empties it: it belongs to no incarnation, since a call
    whose connection was cut off may still be blocked when its incarnation has long been forgotten.
    A crash between here and the claim costs a delay at most. A claim may wait on the server behind
    the BLMOVE: what comes on one connection is done in order.

    What is pending ends with its connection, and never by CLIENT UNBLOCK: where that meets a client
    that CLIENT PAUSE holds up, Redis 7.0 crashes. A token that was moved meanwhile is made good by
    what ends the incarnation, which wakes all lanes that have something ready.

    Args:
        address: where to connect.
        client: knows the functions.
        tenant: whose queue.
        queue: which.
        lane: of the queue.
    """

    def __init__(
        self, address: Address, client: Runner, *, tenant: str, queue: str, lane: str
    ) -> None:
        self._address = address
        self._client = client
        self._tenant = tenant
        self._queue = queue
        self._lane = lane
        self._connection: Connection | None = None
        self._opening: anyio.CancelScope | None = None
        self._is_sent = asyncio.Event()
        self._has_ended = asyncio.Event()
        self._has_ended.set()
        self._is_interrupted = False

    async def wait(self, timeout_s: float) -> bool:
        """Block for at most ``timeout_s`` (0.01 to 2); whether a token came.

        Not at all once it was interrupted, which may come before the first step of this call.

        Raises:
            StorageError: the connection was lost, or the server refuses BLMOVE (memory is full).
        """
        # 0 would block for ever, and the reply time-out must stay longer than the block.
        block_s = min(max(timeout_s, 0.01), LONGEST_BLOCK_S)
        call = consumer.wait(self._tenant, self._queue, self._lane, block_s)
        self._has_ended.clear()
        try:
            if not self._is_interrupted and (
                self._connection is None or not self._connection.is_open
            ):
                with anyio.CancelScope() as self._opening:
                    self._connection = await self._address.open_connection(
                        reply_timeout_s=LONGEST_BLOCK_S + 5
                    )
            if self._is_interrupted or self._connection is None:
                return False
            self._is_sent.set()  # it is before anybody hears of this
            token = call.read(await self._connection.call(*call.words))
        except StorageError:
            if self._is_interrupted:
                return False
            raise
        finally:
            self._has_ended.set()
            self._is_sent.set()  # a claim that still waits goes ahead, or fails
            self._is_sent.clear()
        return token

    async def claim(self, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        """Claim as soon as the pending `wait` ends, in the same breath of the server, else now.

        Raises:
            StorageError: it has not claimed, or the answer was lost.
        """
        if not self._has_ended.is_set():
            await self._is_sent.wait()
        if self._connection is None or self._is_interrupted:
            raise StorageUnavailable("the waiter was interrupted or closed")
        claim = consumer.claim(keys.root(self._tenant, self._queue), call, nonce, slots)
        return claim.read(await self._connection.call(*self._client.words(claim)))

    async def interrupt(self) -> None:
        """End a pending `wait`, and the `claim` behind it, by closing the connection."""
        self._is_interrupted = True
        if self._opening is not None:
            self._opening.cancel()
        await self.aclose()
        await self._has_ended.wait()

    async def aclose(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()


class RedisBeater:
    """Beats from a thread, over a connection of its own."""

    def __init__(self, client: BlockingClient, tenant: str) -> None:
        self._client = client
        self._tenant = tenant

    def beat(self, queue: str, incarnation: str) -> BeatReply:
        """Count a beat."""
        root = keys.root(self._tenant, queue)
        return at_once(self._client.run(consumer.beat(root, incarnation)))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class RedisChannel:
    """A pub/sub channel with a random name, subscribed on first use and again after a loss."""

    def __init__(self, address: Address, tenant: str) -> None:
        self.name: str = keys.channel(tenant, secrets.token_hex(8))
        self._address = address
        self._connection: Subscription | None = None
        self._drops = Drops(self.name)

    async def receive(self) -> End | None:
        """Wait for the next end; None: just subscribed, so read what may have been missed.

        Raises:
            StorageError: the connection can't be opened or was lost; call again.
        """
        if self._connection is None:
            self._connection = await self._address.open_subscription(self.name)
            return None
        try:
            while True:
                message = await self._connection.message()
                try:
                    return read_end(message)
                except Exception as error:  # anybody may have sent anything
                    self._drops.drop(error)
        except StorageError:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()


class RedisInbox:
    """The same channel for a thread that blocks."""

    def __init__(self, address: Address, tenant: str) -> None:
        self.name: str = keys.channel(tenant, secrets.token_hex(8))
        self._address = address
        self._socket: SubscribedSocket | None = None
        self._drops = Drops(self.name)

    def receive(self, timeout_s: float) -> End | None:
        """Block until the next end; None: nothing came in time, or it has just subscribed.

        Raises:
            StorageError: the connection can't be opened or was lost; call again.
        """
        socket = self._socket
        if socket is None or not socket.is_open:
            self._socket = self._address.open_subscribed_socket(self.name)
            return None
        while (message := socket.message(timeout_s)) is not None:
            try:
                return read_end(message)
            except Exception as error:  # anybody may have sent anything
                self._drops.drop(error)
        return None

    def close(self) -> None:
        """Close the connection."""
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()

"""The blocking storage on Redis: threads, signals, lost connections and servers that refuse."""

from __future__ import annotations

import secrets
import socket
import socketserver
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
import pytest
import redis

from headrace.errors import ReplyLost, StaleCall, StorageRefused, StorageUnavailable
from headrace.job import CancelOutcome, EnqueueOutcome, JobState, Verdict
from headrace.storage.redis import client as clients
from headrace.storage.redis import socket as sockets
from headrace.storage.redis.blocking_client import BlockingClient
from headrace.storage.redis.calls.call import command, nothing
from headrace.storage.redis.client import Address
from headrace.storage.redis.library import library
from headrace.storage.redis.socket import limit
from headrace.storage.redis.storage import BlockingRedisStorage
from headrace.storage.steps import Ahead, at_once
from headrace.storage.values import CallId
from headrace.testing.contract.steps import QUEUE, a_job
from tests.storage.interrupts import interrupt_when_it_waits
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

T = TypeVar("T")
Named = tuple[BlockingRedisStorage, str]
QUEUED = [EnqueueOutcome.QUEUED]


@contextmanager
def opened(url: str, *, allow_eviction: bool = False) -> Iterator[BlockingRedisStorage]:
    """Open the storage of a tenant of its own."""
    tenant = f"test-{secrets.token_hex(6)}"
    storage = BlockingRedisStorage(url, allow_eviction=allow_eviction).for_tenant(tenant)
    with closing(storage):
        yield storage


@pytest.fixture
def storage(redis_server: RedisServer) -> Iterator[BlockingRedisStorage]:
    with opened(redis_server.url) as storage:
        yield storage


class Producer:
    """Enqueues jobs one by one, by numbers of its own."""

    def __init__(self, storage: BlockingRedisStorage) -> None:
        self._storage = storage
        self._client = secrets.token_hex(8)

    def enqueue(self, number: int) -> list[Verdict]:
        return at_once(self.steps(self._storage, number))

    def ahead(self, line: BlockingRedisStorage, number: int) -> Ahead[list[Verdict]]:
        return Ahead(self.steps(line, number))

    def steps(
        self, storage: BlockingRedisStorage, number: int
    ) -> Coroutine[Any, Any, list[Verdict]]:
        job = a_job(f"{self._client}-{number}")
        return storage.enqueue(QUEUE, [job], call=CallId(self._client, number))


def queued(storage: BlockingRedisStorage) -> int:
    return at_once(storage.stats(QUEUE)).queued


def connections(server: redis.Redis, name: str) -> int:
    return sum(entry["name"] == name for entry in server.client_list())


async def in_thread(call: Callable[[], T]) -> T:
    """Call what blocks while this loop runs a proxy."""
    return await anyio.to_thread.run_sync(call)


@pytest.fixture
def named(redis_server: RedisServer) -> Iterator[Named]:
    """Open a storage whose connections have a name of their own."""
    name = f"test-{secrets.token_hex(6)}"
    with opened(f"{redis_server.url}?client_name={name}") as storage:
        yield storage, name


async def test_threads_share_it(named: Named, server: redis.Redis) -> None:
    storage, name = named
    threads = 8
    together = threading.Barrier(threads)
    found: list[list[Verdict]] = []

    def work() -> None:
        producer = Producer(storage)
        together.wait()
        found.extend(producer.enqueue(number) for number in range(1, 26))

    others = [threading.Thread(target=work) for _ in range(threads)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert found == [QUEUED] * 200
    assert queued(storage) == 200
    assert 1 <= connections(server, name) <= threads
    storage.close()
    storage.close()
    await until(lambda: connections(server, name) == 0, within=10)
    assert queued(storage) == 200


def test_one_call_after_another_uses_one_connection(named: Named, server: redis.Redis) -> None:
    storage, name = named
    producer = Producer(storage)
    for number in range(1, 4):
        producer.enqueue(number)
        assert connections(server, name) == 1


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """Run a server that the test may stop."""
    with RedisServer() as server:
        yield server


def test_an_interrupted_call_does_not_answer_the_next(own_server: RedisServer) -> None:
    with opened(own_server.url) as storage:
        producer = Producer(storage)
        producer.enqueue(1)
        own_server.pause()
        thread = interrupt_when_it_waits()
        with pytest.raises(KeyboardInterrupt):
            producer.enqueue(2)
        thread.join()
        own_server.resume()
        assert at_once(storage.cancel(QUEUE, ["unknown"])) == [CancelOutcome.NOT_FOUND]
        # It was done or not: by its number it is done once.
        assert producer.enqueue(2) == QUEUED
        assert queued(storage) == 2


def test_an_interrupted_line_loses_what_is_in_flight(own_server: RedisServer) -> None:
    with opened(own_server.url) as storage, storage.in_line() as line:
        producer = Producer(storage)
        producer.enqueue(1)
        own_server.pause()
        first, second = producer.ahead(line, 2), producer.ahead(line, 3)
        thread = interrupt_when_it_waits()
        with pytest.raises(KeyboardInterrupt):
            first.result()
        thread.join()
        own_server.resume()
        with pytest.raises(ReplyLost):
            second.result()
        again = [producer.ahead(line, number) for number in (2, 3)]
        assert [ahead.result() for ahead in again] == [QUEUED, QUEUED]
        assert queued(storage) == 3


async def test_a_lost_reply_is_told_and_its_number_repeats_it(redis_server: RedisServer) -> None:
    async with Proxy(redis_server.port) as proxy:
        with opened(proxy.url) as storage:
            producer = Producer(storage)
            await in_thread(partial(producer.enqueue, 1))
            lost = proxy.drop_next_reply(after=b"_enqueue")
            with pytest.raises(ReplyLost, match=f"^Redis at 127.0.0.1:{proxy.port}: "):
                await in_thread(partial(producer.enqueue, 2))
            assert lost.is_set()
            assert await in_thread(partial(producer.enqueue, 2)) == QUEUED
            assert await in_thread(partial(queued, storage)) == 2


async def test_what_only_reads_is_asked_again(redis_server: RedisServer) -> None:
    async with Proxy(redis_server.port) as proxy:
        with opened(proxy.url) as storage:
            await in_thread(partial(Producer(storage).enqueue, 1))
            lost = proxy.drop_next_reply(after=b"_stats")
            assert await in_thread(partial(queued, storage)) == 1
            assert lost.is_set()


async def test_a_connection_that_ended_while_idle_is_not_used(redis_server: RedisServer) -> None:
    async with Proxy(redis_server.port) as proxy:
        with opened(proxy.url) as storage:
            producer = Producer(storage)
            for number in range(1, 4):
                assert await in_thread(partial(producer.enqueue, number)) == QUEUED
                proxy.reset_all()
                while proxy.connections:
                    await anyio.lowlevel.checkpoint()


async def test_a_server_that_is_away_is_unavailable_and_found_again(
    redis_server: RedisServer,
) -> None:
    async with Proxy(redis_server.port) as proxy:
        with opened(proxy.url) as storage:
            await proxy.refuse()
            with pytest.raises(StorageUnavailable, match="is it running there"):
                await in_thread(partial(queued, storage))
            await proxy.admit()
            assert await in_thread(partial(queued, storage)) == 0


async def test_a_server_that_is_silent_loses_the_reply(redis_server: RedisServer) -> None:
    async with Proxy(redis_server.port) as proxy:
        address, timeout_s = Address(proxy.url), patience(0.2)
        client = BlockingClient(address, library(), allow_eviction=False, timeout_s=timeout_s)
        once = command("once", "", "PING", read=nothing)  # no verb that is asked again
        with closing(client):
            await in_thread(lambda: at_once(client.run(once)))
            proxy.stall("client")
            with pytest.raises(ReplyLost, match=f"no reply for {timeout_s:g} s"):
                await in_thread(lambda: at_once(client.run(once)))
            proxy.flow()
            await in_thread(lambda: at_once(client.run(once)))


@pytest.mark.parametrize("timeout_s", [1e-9, 1.9999999])
def test_the_shortest_time_out_is_not_for_ever(redis_server: RedisServer, timeout_s: float) -> None:
    sock = Address(redis_server.url).open_socket(timeout_s=5)
    with closing(sock):
        limit(sock._sock, timeout_s)  # noqa: SLF001
        options = (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
        set_to = [sock._sock.getsockopt(socket.SOL_SOCKET, o, 16) for o in options]  # noqa: SLF001
        assert all(any(interval) for interval in set_to)


async def test_both_calls_in_flight_are_lost_with_their_connection(
    redis_server: RedisServer,
) -> None:
    async with Proxy(redis_server.port) as proxy:
        with opened(proxy.url) as storage, storage.in_line() as line:
            producer = Producer(storage)
            await in_thread(partial(producer.enqueue, 1))

            def two() -> list[Ahead[list[Verdict]]]:
                return [producer.ahead(line, number) for number in (2, 3)]

            lost = proxy.drop_next_reply(after=b"_enqueue")
            first, second = await in_thread(two)
            with pytest.raises(ReplyLost):
                await in_thread(first.result)
            # The connection may have ended before this one was sent.
            with pytest.raises((ReplyLost, StorageUnavailable)):
                await in_thread(second.result)
            assert lost.is_set()
            for ahead in await in_thread(two):
                assert await in_thread(ahead.result) == QUEUED
            assert await in_thread(partial(queued, storage)) == 3


@pytest.mark.parametrize("flushed", ["before both", "between"])
def test_calls_in_flight_load_what_a_server_has_forgotten(
    storage: BlockingRedisStorage, server: redis.Redis, flushed: str
) -> None:
    producer = Producer(storage)
    producer.enqueue(1)
    with storage.in_line() as line:
        if flushed == "before both":
            server.function_flush()
        first = producer.ahead(line, 2)
        if flushed == "between":
            server.function_flush()
        second = producer.ahead(line, 3)
        assert (first.result(), second.result()) == (QUEUED, QUEUED)
        assert at_once(line.get(QUEUE, "unknown")) is None
    assert queued(storage) == 3


def test_an_answer_that_nobody_read_meets_no_other_call(storage: BlockingRedisStorage) -> None:
    producer = Producer(storage)
    with storage.in_line() as line:
        producer.ahead(line, 1)
    assert at_once(storage.cancel(QUEUE, ["unknown"])) == [CancelOutcome.NOT_FOUND]


async def test_an_inbox_connects_again(redis_server: RedisServer) -> None:
    async with Proxy(redis_server.port) as proxy:
        with opened(proxy.url) as storage, closing(storage.open_inbox()) as inbox:
            assert await in_thread(partial(inbox.receive, 5)) is None
            proxy.reset_all()
            with pytest.raises(StorageUnavailable):
                await in_thread(partial(inbox.receive, 5))
            assert await in_thread(partial(inbox.receive, 5)) is None
            job = a_job(channel=inbox.name)
            await in_thread(lambda: at_once(storage.enqueue(QUEUE, [job], call=CallId("c", 1))))
            await in_thread(lambda: at_once(storage.cancel(QUEUE, [job.id])))
            end = await in_thread(partial(inbox.receive, 5))
            assert end is not None
            assert (end.id, end.state) == (job.id, JobState.CANCELLED)


async def test_an_inbox_asks_a_silent_server_for_a_sign_of_life(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "PING_AFTER_S", 0.01)
    monkeypatch.setattr(clients, "REPLY_TIMEOUT_S", 0.5)
    async with Proxy(redis_server.port) as proxy:
        with opened(proxy.url) as storage, closing(storage.open_inbox()) as inbox:
            for _ in range(5):
                assert await in_thread(partial(inbox.receive, 0.05)) is None
            assert proxy.connections == 1
            proxy.stall("client")

            def receive_until_it_fails() -> None:
                while True:
                    inbox.receive(0.05)

            with pytest.raises(StorageUnavailable, match=r"no reply for 0\.5 s"):
                await in_thread(receive_until_it_fails)
            proxy.flow()
            assert await in_thread(partial(inbox.receive, 5)) is None


def test_rubbish_on_an_inbox_is_passed_over(
    storage: BlockingRedisStorage, server: redis.Redis
) -> None:
    with closing(storage.open_inbox()) as inbox:
        assert inbox.receive(5) is None
        server.publish(inbox.name, b"\xff rubbish")
        assert inbox.receive(0.01) is None
        job = a_job(channel=inbox.name)
        at_once(storage.enqueue(QUEUE, [job], call=CallId("c", 1)))
        at_once(storage.cancel(QUEUE, [job.id]))
        end = inbox.receive(5)
        assert end is not None
        assert end.id == job.id


class OldServer(socketserver.StreamRequestHandler):
    """Answers as Redis 6 does when it is asked what it is."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            if line.strip() == b"INFO":
                said = b"redis_version:6.2.0\r\n"
                self.wfile.write(b"$%d\r\n%s\r\n" % (len(said), said))
            elif line.strip() == b"SETNAME":
                self.wfile.write(b"+OK\r\n")


def test_a_server_that_is_too_old_is_refused() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), OldServer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            with (
                opened(f"redis://127.0.0.1:{server.server_address[1]}") as storage,
                pytest.raises(StorageRefused, match=r"6\.2\.0 is too old"),
            ):
                queued(storage)
        finally:
            server.shutdown()


def test_a_server_that_evicts_is_refused_unless_that_is_accepted(own_server: RedisServer) -> None:
    with own_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    with (
        opened(own_server.url) as storage,
        pytest.raises(StorageRefused, match="maxmemory-policy is allkeys-lru"),
    ):
        queued(storage)
    with opened(own_server.url, allow_eviction=True) as storage:
        assert queued(storage) == 0


def test_a_wrong_password_is_refused_and_not_shown(own_server: RedisServer) -> None:
    with own_server.client() as client:
        client.config_set("requirepass", "right")
    for user in ("", "headrace:wr0ng@"):
        with (
            opened(own_server.url.replace("redis://", f"redis://{user}")) as storage,
            pytest.raises(StorageRefused, match="user, password") as caught,
        ):
            queued(storage)
        assert "wr0ng" not in str(caught.value)
    with opened(own_server.url.replace("redis://", "redis://:right@")) as storage:
        assert queued(storage) == 0


def test_a_user_without_the_right_to_ask_what_the_server_is_passes(
    redis_server: RedisServer, server: redis.Redis
) -> None:
    server.execute_command("ACL", "SETUSER", "blunt", "on", ">pw", "~*", "&*", "+@all", "-info")
    try:
        with opened(redis_server.url.replace("redis://", "redis://blunt:pw@")) as storage:
            assert queued(storage) == 0
    finally:
        server.execute_command("ACL", "DELUSER", "blunt")


def test_an_error_of_the_server_keeps_the_connection(
    storage: BlockingRedisStorage, server: redis.Redis
) -> None:
    producer = Producer(storage)
    for number in range(1, 4):
        producer.enqueue(number)
    opened_before = server.info()["total_connections_received"]
    with pytest.raises(StaleCall):
        producer.enqueue(1)
    assert queued(storage) == 3
    assert server.info()["total_connections_received"] == opened_before

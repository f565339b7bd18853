"""The tests' own tools do what they say: a broken one would make other tests lie."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tests.support.lines import Lines
from tests.support.ports import closed_port, held_port
from tests.support.processes import WorkerProcess
from tests.support.proxy import Proxy, Side
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until
from tests.support.walkthrough import Walkthrough

LOST = redis.ConnectionError, redis.TimeoutError


@asynccontextmanager
async def connected(proxy: Proxy, *, timeout: float = 5.0) -> AsyncIterator[redis.asyncio.Redis]:
    client = redis.asyncio.Redis(
        host="127.0.0.1",
        port=proxy.port,
        socket_timeout=timeout,
        retry=Retry(NoBackoff(), retries=0),
    )
    async with client:
        yield client


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_an_appendonly_server_has_its_data_again_after_a_kill() -> None:
    with RedisServer("--appendfsync", "always", appendonly=True) as server:
        with server.client() as client:
            client.set("key", "value")
        port = server.port
        server.kill()
        server.start()
        assert server.port == port
        with server.client() as client:
            assert client.get("key") == b"value"


def test_a_held_port_is_for_who_asks_for_it_alone() -> None:
    port, holder = held_port()
    with holder:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)):
            socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_a_stopped_server_is_gone_and_its_directory_goes_at_close() -> None:
    with RedisServer() as server:
        pid = server.pid
        server.stop()
        assert not is_alive(pid)
        with server.client() as client, pytest.raises(redis.ConnectionError):
            client.ping()
        assert server.directory.exists()
    assert not server.directory.exists()


def test_a_paused_server_answers_once_it_is_resumed() -> None:
    with RedisServer() as server, server.client() as client:
        client.ping()
        server.pause()
        with socket.create_connection(("127.0.0.1", server.port), timeout=0.05) as raw:
            raw.sendall(b"PING\r\n")
            with pytest.raises(TimeoutError):
                raw.recv(100)
        server.resume()
        assert client.ping()


def test_a_server_takes_further_arguments() -> None:
    with RedisServer("--maxmemory", "20mb") as server, server.client() as client:
        assert client.config_get("maxmemory") == {"maxmemory": "20971520"}


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="nonsense"):
        RedisServer("--nonsense", "1")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
async def test_a_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import signal; from tests.support.redis_server import RedisServer;"
        "server = RedisServer(); print(server.pid, server.directory); signal.pause()"
    )
    with WorkerProcess(sys.executable, "-c", code, directory=tmp_path) as child:
        line = await until(lambda: child.stdout if "\n" in child.stdout else "", what="a pid")
        pid, directory = line.split()
        child.kill()
        await until(lambda: not is_alive(int(pid)), what="the server has died")
        shutil.rmtree(directory)


async def test_the_url_fixture_gives_an_empty_server_with_its_functions(
    redis_server: RedisServer, redis_url: str
) -> None:
    with redis_server.client() as client:
        assert redis_url == redis_server.url
        assert client.dbsize() == 0


async def test_the_proxy_passes_everything_on(redis_url: str) -> None:
    async with Proxy(port_of(redis_url)) as proxy, connected(proxy) as client:
        value = os.urandom(300_000)
        await client.set("key", value)
        assert await client.get("key") == value
        assert proxy.connections == 1


async def test_the_proxy_delays_each_way(redis_url: str) -> None:
    async with Proxy(port_of(redis_url)) as proxy, connected(proxy) as client:
        await client.ping()
        proxy.delay = 0.05
        started = time.monotonic()
        await client.ping()
        assert time.monotonic() - started >= 0.1


async def test_a_dropped_reply_leaves_the_work_done_and_other_connections_alone(
    redis_url: str,
) -> None:
    async with (
        Proxy(port_of(redis_url)) as proxy,
        connected(proxy) as client,
        connected(proxy) as other,
    ):
        await other.ping()
        dropped = proxy.drop_next_reply(after=b"counter")
        await client.ping()
        assert not dropped.is_set()
        with pytest.raises(redis.ConnectionError):
            await client.incr("counter")
        assert dropped.is_set()
        assert await other.incr("counter") == 2
        assert await client.incr("counter") == 3


async def test_a_dropped_reply_is_the_one_of_its_command_in_a_pipeline(redis_url: str) -> None:
    async with Proxy(port_of(redis_url)) as proxy, connected(proxy) as client:
        await client.ping()
        proxy.drop_next_reply(after=b"last")
        pipeline = client.pipeline(transaction=False)
        for key in ("first", "second", "last"):
            pipeline.incr(key)
        with pytest.raises(redis.ConnectionError):
            await pipeline.execute()
        assert await client.mget("first", "second", "last") == [b"1", b"1", b"1"]


@pytest.mark.parametrize(("toward", "done"), [("server", b"1"), ("client", b"2")])
async def test_a_held_command_or_reply_goes_no_further(
    redis_url: str, toward: Side, done: bytes
) -> None:
    async with (
        Proxy(port_of(redis_url)) as proxy,
        connected(proxy, timeout=patience(0.5)) as client,
        connected(proxy) as other,
    ):
        held = proxy.hold(toward, after=b"counter", skip=1)
        await client.incr("counter")
        assert not held.happened.is_set()
        with pytest.raises(LOST):
            await client.incr("counter")
        assert held.happened.is_set()
        assert held.client_port > 0
        assert await other.get("counter") == done


async def test_who_comes_where_no_server_is_gets_counted() -> None:
    async with Proxy(closed_port()) as proxy, connected(proxy) as client:
        assert proxy.refused == 0
        with pytest.raises(LOST):
            await client.ping()
        assert proxy.refused == 1


async def test_every_connection_is_reset_and_new_ones_work(redis_url: str) -> None:
    async with Proxy(port_of(redis_url)) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as raw:
            raw.settimeout(0)
            await until(lambda: proxy.connections == 1)
            proxy.reset_all()
            with pytest.raises(ConnectionResetError):
                await until(lambda: received(raw))
        async with connected(proxy) as client:
            assert await client.ping()


async def test_a_stall_holds_everything_back_until_it_flows(redis_url: str) -> None:
    async with (
        Proxy(port_of(redis_url)) as proxy,
        connected(proxy, timeout=patience(0.3)) as client,
    ):
        await client.ping()
        proxy.stall()
        with pytest.raises(LOST):
            await client.incr("counter")
        with pytest.raises(LOST):
            await client.ping()
        proxy.flow()
        await client.ping()
        assert await client.get("counter") == b"1"


async def test_a_stall_one_way_lets_commands_through(
    redis_server: RedisServer, redis_url: str
) -> None:
    async with (
        Proxy(port_of(redis_url)) as proxy,
        connected(proxy, timeout=patience(0.3)) as client,
    ):
        await client.ping()
        proxy.stall("client")
        with pytest.raises(LOST):
            await client.incr("counter")
        with redis_server.client() as direct:
            assert direct.get("counter") == b"1"


async def test_new_connections_are_refused_and_open_ones_go_on(redis_url: str) -> None:
    async with (
        Proxy(port_of(redis_url)) as proxy,
        connected(proxy) as client,
        connected(proxy) as late,
    ):
        await client.ping()
        port = proxy.port
        await proxy.refuse()
        with pytest.raises(redis.ConnectionError):
            await late.ping()
        assert await client.ping()
        await proxy.admit()
        assert proxy.port == port
        assert await late.ping()


async def test_a_half_closed_connection_still_carries_commands(
    redis_server: RedisServer, redis_url: str
) -> None:
    async with Proxy(port_of(redis_url)) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as raw:
            raw.settimeout(0)
            await until(lambda: proxy.connections == 1)
            proxy.half_close()
            assert await until(lambda: received(raw) == b"", what="the end of the stream")
            raw.sendall(b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n")
            with redis_server.client() as direct:
                await until(lambda: direct.get("counter") == b"1")


async def test_sliced_bytes_are_the_same_bytes(redis_url: str) -> None:
    async with Proxy(port_of(redis_url)) as proxy, connected(proxy) as client:
        proxy.is_sliced = True
        await client.set("key", b"\r\n" * 500)
        assert await client.get("key") == b"\r\n" * 500


async def test_a_child_is_stopped_continued_and_ended(tmp_path: Path) -> None:
    code = "import signal; print('ready'); signal.pause()"
    with WorkerProcess(sys.executable, "-c", code, directory=tmp_path) as child:
        await until(lambda: "ready" in child.stdout)
        child.stop()
        child.term()
        assert child.returncode is None
        child.cont()
        assert await child.wait() == -signal.SIGTERM


async def test_a_child_and_its_children_end_with_the_block_and_a_failure_shows_their_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import signal, subprocess, sys;"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()']);"
        "print(child.pid); signal.pause()"
    )
    grandchild = 0

    async def fail() -> None:
        nonlocal grandchild
        with WorkerProcess(sys.executable, "-c", code, directory=tmp_path) as child:
            grandchild = int(await until(lambda: child.stdout))
            raise ValueError("as a failed test does")

    with pytest.raises(ValueError, match="as a failed test does"):
        await fail()
    await until(lambda: not is_alive(grandchild))
    assert str(grandchild) in capsys.readouterr().err


async def test_until_returns_the_true_value_and_names_the_last_false_one() -> None:
    answers = iter([0, 0, 7])

    async def later() -> int:
        return next(answers)

    assert await until(later) == 7
    with pytest.raises(AssertionError, match=r"the number: 0 after 0\.\d+ s"):
        await until(lambda: 0, within=0.02, what="the number")


def received(raw: socket.socket) -> bytes | None:
    """Return what has come, b"" at the end of the stream, None if nothing has."""
    try:
        return raw.recv(100)
    except BlockingIOError:
        return None


def test_lines_of_one_call_stand_together_and_are_read_as_words(tmp_path: Path) -> None:
    first, second = Lines(tmp_path / "lines"), Lines(tmp_path / "lines")
    assert first.read() == []
    first.write("a 1", "b 2")
    second.write("c")
    assert first.read() == second.read() == [["a", "1"], ["b", "2"], ["c"]]
    with (tmp_path / "lines").open("a") as half:
        half.write("d")  # somebody is about to write the rest
    assert first.read()[-1] == ["c"]


def test_a_server_that_is_launched_tells_when_it_is_ready(tmp_path: Path) -> None:
    with RedisServer(appendonly=True) as server:
        with server.client() as client:
            client.mset({f"key-{n}": "value" for n in range(1000)})
        server.kill()
        states = [server.is_running]
        server.launch("--key-load-delay", "10000000")  # µs a command, and it is killed
        states += [server.is_running, server.is_ready]
        server.kill()
        server.start()
        states += [server.is_running, server.is_ready]
    assert states == [False, True, False, True, True]


PAGE = """
```python no-run
# shop/app.py
print("open")
print("at 9")
```

```console
$ python shop/app.py
open
at …
```
"""


async def read_page(text: str, folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(text)
    with Walkthrough(page, folder, env={}, replaced={"Shop": "shop"}) as reader:
        await reader.follow()


@pytest.mark.parametrize(
    "change", [("", ""), ("open\nat …\n```", "open\n```"), ("$ python shop", "$ python Shop")]
)
async def test_a_page_whose_commands_print_what_it_says_is_followed(
    change: tuple[str, str], tmp_path: Path
) -> None:
    await read_page(PAGE.replace(*change), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        ("\nat …\n", "\nat 10\n"),
        ("open\nat …", "at …\nopen"),
        ('print("open")', "raise SystemExit(1)"),
        ("$ python", "$ uvicorn"),
    ],
)
async def test_a_page_whose_commands_print_something_else_is_found_out(
    change: tuple[str, str], tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"is to print|exit code 1|has ended"):
        await read_page(PAGE.replace(*change), tmp_path)

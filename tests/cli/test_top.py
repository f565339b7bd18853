"""``headrace top``: a live view in a real terminal, and the lines of which it is made."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import psutil
import pytest
from anyio import to_thread

from headrace import App, Worker
from headrace.cli.overview import Overview, view
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.queues import QueueCounts, QueueSettings
from headrace.testing import running
from headrace.views.queues import QueueStats
from tests.cli.conftest import Cli
from tests.support.redis_server import RedisServer
from tests.support.terminal import Terminal
from tests.support.until import until

LEFT = "\x1b[?25h\x1b[?1049l"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
async def app(environment: dict[str, str]) -> AsyncIterator[App[None]]:
    """Return an app on an empty storage."""
    app: App[None] = App(environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"])
    async with app:
        yield app


async def test_the_view_follows_what_happens_and_its_terminal_until_a_key_ends_it(
    app: App[None], environment: dict[str, str]
) -> None:
    @app.task(name="send", queue="mail")
    async def send() -> None: ...

    await send.enqueue()
    with Terminal("top", "--interval", "100ms", columns=120, env=environment) as terminal:
        await terminal.shows("no workers")
        assert terminal.text.startswith("\x1b[?1049h")
        assert "1 queue   0 workers   1 queued, " in terminal.text
        await app.enqueue("t", queue="brand-new")
        await terminal.shows("brand-new")
        async with running(Worker(app, lease=2, name="w7")):
            await terminal.shows("w7")
            await terminal.shows("1 worker   1 queued, 0 scheduled")
        terminal.resize(40, 12)
        await terminal.shows("…")  # the totals have no room any more
        terminal.enter("x")
        terminal.enter("q")
        assert await terminal.ended() == 0
        assert terminal.text.endswith(LEFT)


@pytest.mark.usefixtures("redis_url")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_signal_ends_the_view_and_gives_the_terminal_back(
    environment: dict[str, str], number: signal.Signals, code: int
) -> None:
    with Terminal("top", env=environment) as terminal:
        await terminal.shows("q quits")
        terminal.process.send_signal(number)
        assert await terminal.ended() == code
        assert terminal.text.endswith(LEFT)
        assert "Traceback" not in terminal.text


@pytest.mark.usefixtures("redis_url")
async def test_a_suspended_view_gives_the_terminal_back_and_takes_it_again(
    environment: dict[str, str],
) -> None:
    with Terminal("top", env=environment) as terminal:
        await terminal.shows("q quits")
        terminal.enter("\x1a")
        await terminal.shows(LEFT)
        process = psutil.Process(terminal.process.pid)
        # It stops a moment after it has given the terminal back, and would miss what came before.
        await until(
            lambda: process.status() == psutil.STATUS_STOPPED, within=15, what="it is suspended"
        )
        before = len(terminal.text)
        terminal.process.send_signal(signal.SIGCONT)
        await terminal.shows("q quits", after=before)
        assert terminal.text[before:].startswith("\x1b[?1049h")
        terminal.enter("q")
        assert await terminal.ended() == 0


async def test_the_view_outlives_a_server_that_is_away() -> None:
    words = ("top", "--interval", "100ms")
    with RedisServer(appendonly=True) as server:
        env = {"HEADRACE_URL": server.url}
        with Terminal(*words, columns=120, env=env) as terminal:
            await terminal.shows("0 queues")
            server.kill()
            await terminal.shows("The storage is away")
            before = len(terminal.text)
            server.start()
            await terminal.shows("0 queues", after=before)


async def test_without_a_terminal_it_is_shown_once(app: App[None], cli: Cli) -> None:
    await app.enqueue("t", queue="mail")
    ran = await to_thread.run_sync(cli, "top")
    assert (ran.code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    assert re.search(r"^mail +1 ", ran.out, re.MULTILINE)


def an_overview(queues: int, workers: int) -> Overview:
    counts = [
        QueueCounts(
            queue=f"queue-{n}", is_paused=False, queued=queues - n, scheduled=0, retrying=0,
            active=0, history=0, dead=0, workers=1, oldest_ms=0, window_ms=60_000, enqueued=0,
            completed=0, failed=0, retried=0, cancelled=0, stalled=0, waits_ms={}, runs_ms={},
            settings=QueueSettings(),
        )
        for n in range(queues)
    ]  # fmt: skip
    info = IncarnationInfo(
        incarnation="i", name="w", host="h", pid=1, version="0.1.0", concurrency=10,
        lease_ms=15_000, registered_ms=1,
    )  # fmt: skip
    served = [{"queue-0": info} for _ in range(workers)]
    return Overview("tenant 't'", datetime.now(UTC), [QueueStats.of(one) for one in counts], served)


def test_blocked_jobs_are_counted_where_there_are_any() -> None:
    found = an_overview(1, 1)
    assert not any("blocked" in line for line in view(found, columns=0, rows=0))
    [stats] = found.queues
    some = msgspec.structs.replace(found, queues=[replace(stats, blocked=3)])
    assert any("3 blocked" in line for line in view(some, columns=0, rows=0))


@pytest.mark.parametrize(
    ("queues", "workers", "queues_shown", "workers_shown"),
    [(3, 2, 3, 2), (50, 2, 14, 2), (3, 50, 3, 13), (50, 50, 11, 5), (0, 0, 0, 0)],
)
def test_the_busiest_queues_and_some_workers_are_shown_where_there_is_no_room_for_all(
    queues: int, workers: int, queues_shown: int, workers_shown: int
) -> None:
    lines = view(an_overview(queues, workers), columns=80, rows=24)
    found = [COLOUR.sub("", line) for line in lines]
    assert len(found) <= 24
    assert max(map(len, found)) <= 80
    assert [line.split()[0] for line in found if line.startswith("queue-")] == [
        f"queue-{n}" for n in range(queues_shown)
    ]
    assert sum(line.startswith("w ") for line in found) == workers_shown
    assert (f"… and {queues - queues_shown} queues more" in found) == (queues > queues_shown)
    assert (f"… and {workers - workers_shown} workers more" in found) == (workers > workers_shown)


def test_a_notice_stands_in_place_of_the_totals() -> None:
    found = view(an_overview(1, 1), columns=80, rows=24, notice="Note: it is away.")
    assert COLOUR.sub("", found[1]) == "Note: it is away."

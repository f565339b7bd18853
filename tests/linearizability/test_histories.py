"""What concurrent clients see of jobs can be explained by one order of steps, whatever goes wrong.

Each kind of storage has 15 histories, 60 more in `make test-slow`, or as many as
``HEADRACE_HISTORIES`` says; a failure shows the ``HEADRACE_SEED`` of their choices. What happens at
once is never quite the same again.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import msgspec
import pytest

from headrace.storage.redis.storage import RedisStorage
from headrace.storage.sqlite.storage import SqliteStorage
from tests.linearizability.faults import BrokenConnections, Impatience
from tests.linearizability.process import Assignment, Report
from tests.linearizability.runner import (
    MOST_CLIENTS,
    NOW_MS,
    TENANT,
    Kind,
    Plan,
    look,
    run_clients,
)
from tests.support.clock import ServerClock, library_with_test_clock
from tests.support.processes import WorkerProcess
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

ASKED = os.environ.get("HEADRACE_HISTORIES")
HISTORIES = [int(ASKED)] if ASKED else [15, pytest.param(60, marks=pytest.mark.slow)]
SEED = int(os.environ.get("HEADRACE_SEED") or secrets.randbits(32))
PROCESSES = 2

pytestmark = [
    pytest.mark.timeout(300 + int(ASKED or 0)),
    pytest.mark.parametrize("histories", HISTORIES),
    pytest.mark.parametrize("kind", ["jobs", "order", "schedules", "limits"]),
]


def plans(kind: Kind, histories: int) -> list[Plan]:
    # pytest shows it beside a failure, and with -s at once.
    sys.stdout.write(f"HEADRACE_SEED={SEED} HEADRACE_HISTORIES={histories}\n")
    return [Plan(kind, number, SEED) for number in range(histories)]


async def test_histories_on_redis_have_an_explanation(
    kind: Kind, histories: int, redis_server: RedisServer, redis_url: str
) -> None:
    """G1, G5-G8, G10, G13: through proxies that delay, lose replies and reset connections."""
    library = library_with_test_clock()
    found = []
    async with AsyncExitStack() as stack:
        ServerClock(stack.enter_context(redis_server.client()))
        proxies = [
            await stack.enter_async_context(Proxy(redis_server.port)) for _ in range(MOST_CLIENTS)
        ]
        direct, *broken = (
            RedisStorage(url, source=library).for_tenant(TENANT)
            for url in (redis_url, *(proxy.url for proxy in proxies))
        )
        for storage in (direct, *broken):
            stack.push_async_callback(storage.aclose)
        for plan in plans(kind, histories):
            clients = {
                name: (storage, BrokenConnections(proxy, library, plan.seed_of(name)))
                for name, storage, proxy in zip(plan.names, broken, proxies, strict=False)
            }
            lines = await run_clients(plan, clients)
            found += plan.problems([*lines, *await look(plan, direct)])
    assert not found, "\n\n".join(found[:3])


async def test_histories_in_memory_have_an_explanation(kind: Kind, histories: int) -> None:
    """G1, G5-G8, G10, G13: several storages of one loop, whose callers lose their patience."""
    url = f"memory://test-{secrets.token_hex(6)}"
    found = []
    async with AsyncExitStack() as stack:
        storages = [
            SqliteStorage(url, clock=lambda: NOW_MS).for_tenant(TENANT) for _ in range(MOST_CLIENTS)
        ]
        for storage in storages:
            stack.push_async_callback(storage.aclose)
        for plan in plans(kind, histories):
            clients = {
                name: (storage, Impatience(plan.seed_of(name)))
                for name, storage in zip(plan.names, storages, strict=False)
            }
            lines = await run_clients(plan, clients)
            found += plan.problems([*lines, *await look(plan, storages[0])])
    assert not found, "\n\n".join(found[:3])


async def test_histories_of_several_processes_on_a_directory_have_an_explanation(
    kind: Kind, histories: int, tmp_path: Path
) -> None:
    """G1, G5-G8, G10, G13: each process has some of the clients, on storages of its own."""
    assignments = [
        Assignment(str(tmp_path), kind, SEED, histories, index, PROCESSES)
        for index in range(PROCESSES)
    ]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                WorkerProcess.module(
                    "tests.linearizability.process",
                    msgspec.json.encode(assignment).decode(),
                    directory=tmp_path,
                    name=f"process-{assignment.index}",
                )
            )
            for assignment in assignments
        ]
        for process in processes:
            assert await process.wait(30 + histories) == 0
        reports = [
            msgspec.json.decode(line, type=Report)
            for process in processes
            for line in process.stdout.splitlines()
        ]
    found = []
    async with AsyncExitStack() as stack:
        storage = SqliteStorage(f"file://{tmp_path}/data", clock=lambda: NOW_MS).for_tenant(TENANT)
        stack.push_async_callback(storage.aclose)
        for plan in plans(kind, histories):
            lines = [x for report in reports if report.number == plan.number for x in report.lines]
            found += plan.problems([*lines, *await look(plan, storage)])
    assert not found, "\n\n".join(found[:3])

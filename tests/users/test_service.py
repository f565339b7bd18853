"""The service in examples/service: its own tests and types, and a run with real processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes import ROOT, WorkerProcess
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

SERVICE = ROOT / "examples" / "service"
LIMIT_S = 60


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module in the service's folder, and wait for its end."""
    # basedpyright looks for packages in the environment of the first Python on the path.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=SERVICE,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=patience(3 * LIMIT_S),
        check=False,
    )


def test_its_own_tests_pass() -> None:
    done = run("pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed", done.stdout, re.M)


def test_mypy_finds_nothing_in_it(tmp_path: Path) -> None:
    done = run("mypy", "--cache-dir", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_basedpyright_finds_nothing_in_it() -> None:
    done = run("basedpyright", "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr


@asynccontextmanager
async def served(url: str, folder: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """Run the web service as a process whose jobs are at a URL, and yield a client of it."""
    with WorkerProcess.module(
        *("uvicorn", "shop.web.main:api", "--port", "0"),
        directory=folder,
        name="web",
        env={"HEADRACE_URL": url, "SHOP_DATA": f"{folder}/data"},
        cwd=SERVICE,
    ) as web:
        running = re.compile(r"Uvicorn running on (\S+)")
        at = await until(lambda: running.search(web.stderr), within=LIMIT_S, what="its address")
        assert at is not None
        async with httpx2.AsyncClient(base_url=at[1], timeout=patience(LIMIT_S)) as client:
            yield client


@pytest.fixture(params=["file", "redis"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """Run the web service and a worker as processes, and return a client of the service."""
    is_redis = request.param == "redis"
    url = request.getfixturevalue("redis_url") if is_redis else f"file://{tmp_path}/jobs"
    with WorkerProcess.module(
        *("headrace", "worker", "shop.app:app", "--process-slots", "1"),
        directory=tmp_path,
        env={"HEADRACE_URL": url, "SHOP_DATA": f"{tmp_path}/data"},
        cwd=SERVICE,
    ):
        async with served(url, tmp_path) as client:
            yield client


async def test_it_serves_orders_quotes_and_reports_with_a_real_worker(
    shop: httpx2.AsyncClient, tmp_path: Path
) -> None:
    orders = [order(number, "tea", "cake") for number in range(1, 41)]
    answer = await shop.post("/orders/import", json=orders)
    assert (answer.status_code, answer.json()) == (202, {"new": 40, "known": 0})
    for number in range(1, 41):
        await ended(shop, f"/jobs/order-{number}")
    await ended(shop, "/jobs/receipt-40")
    assert "It costs 20.00." in (tmp_path / "data/outbox/receipt-40.eml").read_text()

    quote = await shop.post("/quotes", json=order(41, "tea"))
    assert quote.json() == {"goods": "10.00", "delivery": "4.90"}

    at = (await shop.post("/reports/bought-together?best=1")).headers["Location"]
    events = (await shop.get(f"{at}/events")).text
    assert events.count("event: step") == 20
    status = await ended(shop, at)
    assert status["result"] == {
        "orders": 40,
        "pairs": [{"products": ["cake", "tea"], "orders": 40}],
    }
    assert (status["progress"], status["lane"]) == (1, "process")
    assert (await shop.delete(at)).json() == {"outcome": "finished"}


async def test_it_answers_503_when_jobs_can_not_be_stored(
    redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    async with served(redis_url, tmp_path) as shop:
        with redis_server.client() as server:
            server.config_set("maxmemory", 1)
            try:
                answer = await shop.post("/orders", json=order(1, "tea"))
            finally:
                server.config_set("maxmemory", 0)
        assert (answer.status_code, answer.json()["error"]) == (503, "StorageFull")
        assert answer.headers["Retry-After"] == "5"
        assert (await shop.post("/orders", json=order(1, "tea"))).status_code == 202


async def ended(shop: httpx2.AsyncClient, at: str) -> dict[str, Any]:
    """Wait until a job has completed, and return its status."""
    status: dict[str, Any] = {}

    async def has_completed() -> bool:
        status.update((await shop.get(at)).json())
        return status.get("state") == "completed"

    await until(has_completed, within=LIMIT_S, what=f"{at} is completed")
    return status


def order(number: int, *products: str) -> dict[str, Any]:
    """Return the body of an order of one of each product, at 10.00."""
    lines = [{"product": product, "price": "10.00"} for product in products]
    return {"number": number, "email": "ada@example.org", "lines": lines}

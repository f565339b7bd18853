"""The Flask app of docs/guides/synchronous-programs.md, served by gunicorn."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
import pytest

from headrace import SyncApp
from tests.support.processes import ROOT, WorkerProcess
from tests.support.project import Project
from tests.support.threads import at_a_time, blocked_until
from tests.support.until import patience

PAGE = (ROOT / "docs" / "guides" / "synchronous-programs.md").read_text()

# What gunicorn loads: the page's app, which the process that loads it may use at once.
SERVED = """
import os

from views import send, web

if "USED" in os.environ:
    send.enqueue("who loaded it")


@web.after_request
def signed(response):
    response.headers["Served-By"] = str(os.getpid())
    return response
"""

CLIENTS, EACH = 6, 8
SENT = [f"{client}-{number}" for client in range(CLIENTS) for number in range(EACH)]
THREADS = ["--worker-class", "gthread", "--threads", "4"]
SERVERS: dict[str, tuple[list[str], dict[str, str]]] = {
    "forked": ([], {}),
    "preloaded": (["--preload"], {}),
    "preloaded and used": (["--preload"], {"USED": "1"}),
    "threads": (THREADS, {}),
    "threads, preloaded and used": (["--preload", *THREADS], {"USED": "1"}),
}


class Answer(NamedTuple):
    """What a server says to a request."""

    status: int
    body: dict[str, Any]
    worker: int


class Server:
    """gunicorn with two workers that has been started."""

    def __init__(self, process: WorkerProcess, project: Project) -> None:
        self.process = process
        self._redis_port = urlsplit(project.url).port
        self._address = blocked_until(self._listening)

    def _listening(self) -> str:
        assert self.process.returncode is None, self.process.stderr
        found = re.search(r"Listening at: http://(\S+)", self.process.stderr)
        return found[1] if found else ""

    @property
    def workers(self) -> set[int]:
        """The processes that serve, or are about to."""
        return {child.pid for child in psutil.Process(self.process.pid).children()}

    def ask(self, method: str, path: str) -> Answer:
        """Send a request on a connection of its own."""
        with closing(HTTPConnection(self._address, timeout=patience(30))) as connection:
            connection.request(method, path)
            response = connection.getresponse()
            worker = int(response.headers["Served-By"])
            return Answer(response.status, json.load(response), worker)

    def enqueued(self, client: int) -> list[str]:
        """Enqueue as one client; return the ids that it was told, if it was not cut off."""
        ids = []
        for number in range(EACH):
            try:
                answer = self.ask("POST", f"/mails/{client}-{number}")
            except (OSError, HTTPException):
                continue
            assert answer.status == 202, answer
            ids.append(answer.body["id"])
        return ids

    def answering(self, *, but: Set[int] = frozenset()) -> set[int]:
        """Return the two workers once each of them has answered, and none is one of some others."""
        seen = set()

        def both() -> set[int]:
            seen.add(self.ask("POST", "/mails/anybody").worker)
            return self.workers if self.workers <= seen - but and len(self.workers) == 2 else set()

        return blocked_until(both)

    def connections(self) -> list[tuple[int, int]]:
        """Return the worker and the local port of each connection to Redis."""
        return [
            (worker, connection.laddr.port)
            for worker in self.workers
            for connection in psutil.Process(worker).net_connections("tcp")
            if connection.raddr and connection.raddr.port == self._redis_port
        ]


@contextmanager
def gunicorn(project: Project, *words: str, **env: str) -> Iterator[Server]:
    """Serve the page's app until the block ends."""
    argv = ("served:web", "--bind", "127.0.0.1:0", "--workers", "2", "--no-control-socket", *words)
    with WorkerProcess.module(
        "gunicorn",
        *argv,
        directory=project.folder,
        name="gunicorn",
        env={"HEADRACE_URL": project.url, **env},
        cwd=project.folder,
    ) as process:
        yield Server(process, project)
        process.term()
        assert asyncio.run(process.wait(20)) == 0


@pytest.fixture
def project(tmp_path: Path, redis_url: str) -> Project:
    """Return the page's app, what serves it, and an empty Redis."""
    [(name, source)] = re.findall(r"^```python no-run\n# (\S+\.py)\n(.*?)^```$", PAGE, re.M | re.S)
    project = Project(tmp_path, {name: source, "served.py": SERVED})
    project.url = redis_url
    return project


def stored(project: Project) -> dict[str, str]:
    """Return whom each job that waits is for, by its id."""
    with SyncApp(project.url, tenant="views") as app:
        waiting = [job.id for job in app.queue("mail").jobs("queued")]
        return {id: app.job(id, queue="mail").status().args["to"] for id in waiting}


@pytest.mark.parametrize("case", SERVERS)
def test_each_request_stores_its_job_once(project: Project, case: str) -> None:
    words, env = SERVERS[case]
    with gunicorn(project, *words, **env) as server:
        told = [id for ids in at_a_time(CLIENTS, server.enqueued) for id in ids]
        workers = server.answering()
        connections = server.connections()
    assert len(set(told)) == len(SENT), "each was answered"
    jobs = stored(project)
    assert set(told) <= set(jobs)
    counts = Counter(jobs.values())
    assert {to: counts[to] for to in SENT} == dict.fromkeys(SENT, 1)
    # A worker to which the kernel gave no such request has none.
    assert set() < {worker for worker, _ in connections} <= workers
    assert len({port for _, port in connections}) == len(connections), "no two share one"


def test_workers_that_are_killed_and_reloaded_store_nothing_twice(project: Project) -> None:
    with gunicorn(project, "--preload") as server:
        first = server.answering()

        def client(number: int) -> list[str]:
            if number == 0:
                os.kill(min(first), signal.SIGKILL)
                os.kill(server.process.pid, signal.SIGHUP)
            return server.enqueued(number)

        told = [id for ids in at_a_time(CLIENTS, client) for id in ids]
        server.answering(but=first)
    jobs = stored(project)
    assert set(told) <= set(jobs)
    assert len(told) == len(set(told)) > len(SENT) / 2
    counts = Counter(jobs.values())
    assert all(counts[to] <= 1 for to in SENT)


def test_a_view_waits_for_the_result(project: Project) -> None:
    argv = ("worker", "views:app")
    env = {"HEADRACE_URL": project.url}
    with (
        gunicorn(project) as server,
        WorkerProcess.module(
            "headrace", *argv, directory=project.folder, env=env, cwd=project.folder
        ) as worker,
    ):
        job_id = server.ask("POST", "/mails/ada").body["id"]

        def result() -> dict[str, Any] | None:
            answer = server.ask("GET", f"/mails/{job_id}")
            return answer.body if answer.status == 200 else None

        assert blocked_until(result) == {"result": "welcome sent to ada"}
        assert server.ask("GET", "/mails/none")[:2] == (404, {"error": "no such job"})
        worker.term()
        assert asyncio.run(worker.wait(20)) == 0

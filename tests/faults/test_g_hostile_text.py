"""Text that comes from anywhere: no command prints what a terminal obeys, and errors stay short."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App, FailReason, HeadraceError, UsageError
from headrace.job import ErrorInfo
from headrace.outcome import Failed
from headrace.request import JobRequest
from headrace.storage.connect import open_storage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.values import CallId, Settlement
from tests.cli.conftest import Cli, cli, environment, here
from tests.support.until import patience

__all__ = ["cli", "environment", "here"]

ODD = "a\x1b]0;owned\x07\x9b2J\nb"


@pytest.fixture(params=["redis", "file"])
def cli_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file://{tmp_path}/data"
    url: str = request.getfixturevalue("redis_url")
    return url


def is_clean(text: str) -> bool:
    """Whether a terminal would obey nothing in it."""
    return all(char in "\n\t" or not 0 <= ord(char) < 32 for char in text) and not any(
        0x7F <= ord(char) <= 0x9F for char in text
    )


def a_worker() -> IncarnationInfo:
    return IncarnationInfo(
        incarnation="i",
        name=ODD,
        host=ODD,
        pid=1,
        version="1",
        concurrency=1,
        lease_ms=15_000,
        registered_ms=0,
    )


async def plant(url: str, tenant: str) -> None:
    """Store what no checked call would: a dead letter, a waiting job and a queue of odd names."""
    storage = open_storage(url, tenant=tenant)
    try:
        await storage.register("q", a_worker())
        dead = JobRequest(ODD, "q", ODD, '{"a":"\x9b"}'.encode())
        await storage.enqueue("q", [dead], call=CallId("c", 1))
        found = await storage.claim("q", call=CallId("i", 1), nonce="i/1", slots={"default": 1})
        [job] = found.jobs
        error = ErrorInfo(type=ODD, message=f"the text {ODD}", traceback=ODD)
        failed = Settlement(job.id, job.claim, 0, Failed(FailReason.PERMANENT, error))
        await storage.settle("q", [failed], call=CallId("i", 2))
        waiting = JobRequest(f"{ODD}2", "q", ODD, b"{}")
        await storage.enqueue("q", [waiting], call=CallId("c", 2))
        await storage.enqueue(ODD, [JobRequest("x", ODD, "t", b"{}")], call=CallId("c", 3))
    finally:
        await storage.aclose()


def test_no_command_prints_what_a_terminal_obeys(here: Cli, environment: dict[str, str]) -> None:
    asyncio.run(plant(environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]))
    for words in (
        ("queue", "list"),
        ("queue", "stats"),
        ("job", "list"),
        ("dead", "list"),
        ("workers",),
        ("dead", "purge", "--all", "--dry-run"),
        ("queue", "purge", "q", "--dry-run"),
        ("job", "show", ODD),
        ("queue", "stats", ODD),
        ("events",),
    ):
        for output in ("table", "json"):
            ran = here(*words, "-o", output)
            assert is_clean(ran.out), (words, ran.out)
            assert is_clean(ran.err), (words, ran.err)
    dead = here("dead", "list", "-o", "json").json
    assert dead[0]["id"] == ODD
    assert dead[0]["error"].startswith("a ]0")


LOG = """
from headrace.events import ClaimLost, AttemptEnded, LoopFailed, StorageLost
from headrace.logs.lines import log_events
from headrace.logs.setup import LogSetup, set_up

set_up(LogSetup({log_format!r}, "debug"))
emit = log_events()
odd = {odd!r}
emit(AttemptEnded(job_id=odd, task=odd, queue=odd, start=1, outcome="failed", duration_ms=1,
                 error_type=odd, error=odd, reason=odd))
emit(ClaimLost(job_id=odd, task=odd, queue=odd, start=1))
emit(StorageLost(queue=odd, error=odd))
emit(LoopFailed(loop="sweep", error=odd))
"""


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_the_log_holds_nothing_that_a_terminal_obeys(log_format: str) -> None:
    program = LOG.format(log_format=log_format, odd=ODD)
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=True,
    )
    lines = ran.stderr.splitlines()
    assert len(lines) == 4, ran.stderr
    assert is_clean(ran.stderr)
    if log_format == "json":
        assert all(json.loads(line)["level"] for line in lines)


@pytest.mark.parametrize(
    ("stdin", "args"),
    [
        ("", "[" * 100_000),
        ("[" * 100_000, "-"),
        ("", '{"a":' * 20_000),
        ("", "\udcff"),
        ("", f'{{"a":[{10**302}]}}'),
        ("", '{"a":' + "9" * 5000 + "}"),
    ],
    ids=["lists", "standard input", "objects", "no text", "302 digits", "5000 digits"],
)
def test_arguments_that_nobody_can_read_are_wrong_usage(cli: Cli, stdin: str, args: str) -> None:
    ran = cli("enqueue", "t", "-q", "q", "--args", args, stdin=stdin)
    assert ran.code == 2, ran
    assert ran.err.startswith("Error: ")
    assert len(ran.err) < 600
    assert is_clean(ran.err)


@pytest.mark.parametrize(
    "url",
    [
        "file:///tmp/" + "a" * 5000,
        "file:///tmp/" + "a/" * 2500,
        "file://" + "a" * 5000,
        "file:///tmp/x?" + "a" * 5000,
        "memory://" + "a" * 5000,
        "a" * 5000 + "://x",
        "redis://" + "a" * 5000 + ":x",
        "unix:///" + "a" * 5000,
    ],
    ids=lambda url: url[:14],
)
async def test_an_error_about_a_long_url_is_short(url: str) -> None:
    with pytest.raises(HeadraceError) as caught:
        async with App(url, retry_for=0.01) as app:
            await app.connect()
    assert len(str(caught.value)) < 800
    assert is_clean(str(caught.value))


async def test_errors_quote_little_of_long_names() -> None:
    app = App("memory://")
    long = "x" * 50_000

    @app.task(name="t")
    async def t(a: int) -> None: ...

    for make in (
        lambda: app.queue(long),
        lambda: app.job(long),
        lambda: t.options(id=long),
        lambda: t.job(**{long: 1}),
        lambda: t.options(headers={long: long}),
        lambda: t.options(headers={long: 1}),  # type: ignore[dict-item]
        lambda: app.task(name=long)(test_errors_quote_little_of_long_names),
    ):
        with pytest.raises(UsageError) as caught:
            make()
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "words",
    [
        ("worker", "tests.apps.cli_app:app", "--check", "--process-max-memory", "9" * 400),
        ("worker", "tests.apps.cli_app:app", "--check", "-q", "a=" + "9" * 5000),
        ("worker", "tests.apps.cli_app:app", "--check", "--lease", "9" * 5000),
        ("worker", "tests.apps.cli_app:app", "--check", "--processes", "x" * 5000),
        ("worker", "tests.apps.cli_app:" + "x" * 5000, "--check"),
        ("enqueue", "t", "-q", "q", "--delay", "9" * 5000),
        ("enqueue", "t", "-q", "q", "--delay", "x" * 5000),
        ("enqueue", "t", "-q", "q", "--at", "x" * 5000),
        ("enqueue", "t", "-q", "q", "--header", "x" * 5000),
    ],
    ids=lambda words: words[-2] if len(words[-1]) < 5001 else words[-1][:20],
)
def test_an_option_beyond_all_bounds_is_wrong_usage(here: Cli, words: tuple[str, ...]) -> None:
    ran = here(*words)
    assert ran.code in (2, 4), ran
    assert len(ran.err) < 900

"""The commands of the pipeline do what their functions do, in the session of this process."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace import SyncApp
from headrace.cli import main
from headrace.storage.connect import open_blocking
from headrace.storage.redis.library import library
from headrace.storage.steps import at_once
from tests.cli.conftest import Ran
from tests.spark.support.archives import AT, add_dead_letters, add_run, event, events_of
from tests.spark.support.worked import dead, done, work
from tests.support.processes import WorkerProcess
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import until

Cli = Callable[..., Ran]
TENANT = "shop"
LIMIT_S = 60


@pytest.fixture
def cli(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """Return what runs a command of the pipeline here, on the tenant of the tests."""
    monkeypatch.setenv("HEADRACE_TRACEBACK", "")  # what main itself sets is undone with it

    def run(*words: str | Path) -> Ran:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["headrace", "pipeline", *map(str, words)])
            patch.setenv("HEADRACE_TENANT", TENANT)
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run


def attempts(spark: SparkSession, root: Path) -> None:
    """Archive two attempts of an hour, and what tells that the hour is over."""
    happened = [
        event("active", number=1, wait_ms=3),
        event("completed", number=2, start=1, run_ms=100),
        event("active", number=3, at=AT + timedelta(hours=1), wait_ms=3),
    ]
    add_run(events_of(spark, happened), root, run=1)


def test_an_archive_has_what_happened_and_brings_it_back(
    cli: Cli, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    root, target = tmp_path / "archive", ("--url", url, "--tenant", "default")
    work(url, {**dead(["a", "b"]), **done(["c"])})
    work(url, dead(["d"]), queue="mails")

    ran = cli("archive", root, *target, "--queue", "orders", "--events-cap", "2000000")
    assert (ran.code, ran.err) == (
        0,
        "Each queue may hold about 4,200,000,000 bytes of events for readers.\n",
    )
    assert re.match(r"\d+ events and 2 dead letters archived, until 20\d\d-.* UTC", ran.out), ran
    assert app.queue("orders").stats().keeps_events_cap == 2_000_000

    ran = cli("archive", root, *target, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert (ran.json["run"], ran.json["dead_letters"], ran.json["lost"]) == (2, 1, 0)
    assert {reader.name for reader in app.queue("mails").readers()} == {"archive"}

    [row] = cli("failures", root, *target[2:], "-n", "1", "-o", "json").json
    assert (row["queue"], row["error"], row["dead"]) == ("orders", "ValueError", 2)
    assert cli("replay", root, *target, "--where", "queue = 'orders'", "--yes").code == 0
    assert len(list(app.queue("orders").jobs("queued"))) == 2


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_events_that_are_lost_fail_a_run_unless_that_is_allowed(
    cli: Cli, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    words = ("archive", tmp_path, "--url", url, "--tenant", "default")
    work(url, dead(["a", "b"]))
    assert cli(*words).code == 0
    app.queue("orders").purge("failed", all_jobs=True)
    with closing(open_blocking(url)) as storage:
        assert at_once(storage.delete_queue("orders", is_forced=True)) == 0
    work(url, dead(["c"]))
    ran = cli(*words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran
    assert ran.err.endswith(" (on the command line: --allow-loss)\n")
    assert cli(*words, "--allow-loss").code == 0


def test_where_the_tenant_has_no_queues_nothing_is_archived(
    cli: Cli, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    app.connect()
    ran = cli("archive", tmp_path / "archive", "--url", url)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("There are no queues yet in tenant 'shop' at ")
    assert not (tmp_path / "archive").exists()


@pytest.mark.slow
@pytest.mark.parametrize("url", ["redis"], indirect=True)
async def test_an_archiver_follows_what_happens_until_it_is_interrupted(
    url: str, tmp_path: Path
) -> None:
    root = tmp_path / "archive"
    work(url, dead(["a"]))
    words = ("pipeline", "archive", str(root), "--follow", "--interval", "100ms", "-o", "json")
    with WorkerProcess.module("headrace", *words, "--url", url, directory=tmp_path) as archiver:

        def letters() -> list[tuple[int, int]]:
            """Return which runs have brought dead letters, and how many."""
            whole = archiver.stdout.rpartition("\n")[0]
            reports = map(json.loads, whole.splitlines())
            counts = ((report["run"], report["dead_letters"]) for report in reports)
            return [(run, count) for run, count in counts if count]

        assert await until(letters, within=LIMIT_S) == [(1, 1)]
        work(url, dead(["b"]))
        # A run may begin before it is dead, and bring what has happened until then.
        [(run, count)] = await until(lambda: letters()[1:], within=LIMIT_S)
        assert (run > 1, count) == (True, 1)
        archiver.interrupt()
        assert await archiver.wait(timeout=LIMIT_S) == 130
        assert archiver.stderr.strip() == "Interrupted."


@pytest.mark.slow
async def test_an_archiver_that_is_interrupted_in_a_query_says_no_more(
    redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    work(redis_url, dead(["a"]))
    async with Proxy(redis_server.port) as proxy:
        # The driver asks for some itself; then it is Spark that waits for them.
        held = proxy.hold("client", after=library().function("export").encode(), skip=1)
        words = ("pipeline", "archive", str(tmp_path / "archive"), "--url", proxy.url)
        with WorkerProcess.module("headrace", *words, directory=tmp_path) as archiver:
            await until(held.happened.is_set, within=LIMIT_S, what="Spark waits for dead letters")
            archiver.interrupt()
            assert await archiver.wait(timeout=LIMIT_S) == 130
            assert archiver.stderr.strip() == "Interrupted."


def test_a_rollup_says_what_it_has_made(cli: Cli, spark: SparkSession, tmp_path: Path) -> None:
    attempts(spark, tmp_path)
    ran = cli("rollup", tmp_path, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {"partitions": 3, "rows": 3, "final_until": "2026-01-31T03:30:00Z"}

    ran = cli("rollup", tmp_path, "--since", "2026-01-31T00:00Z")
    assert ran.out.startswith(
        "3 partitions with 3 rows made anew.\nWhat happened before 2026-01-31 03:30:00 UTC ("
    ), ran


def test_a_baseline_shows_which_tasks_have_drifted(
    cli: Cli, spark: SparkSession, tmp_path: Path
) -> None:
    for run, hours in enumerate((-2, 0), start=1):
        at = AT + timedelta(hours=hours)
        ended = [event("completed", at=at, run_ms=100 * run**2) for _ in range(6)]
        add_run(
            events_of(spark, [*ended, event("active", at=at + timedelta(hours=1))]),
            tmp_path,
            run=run,
        )
    cli("rollup", tmp_path)
    ran = cli("baseline", tmp_path, "--least", "6")
    assert (ran.code, ran.err) == (0, ""), ran
    assert [line.split() for line in ran.out.splitlines()] == [
        [
            "TENANT",
            "QUEUE",
            "TASK",
            "USUAL",
            "P99",
            "RECENT",
            "P99",
            "RATIO",
            "ATTEMPTS",
            "BEFORE",
            "NOTE",
        ],
        ["shop", "mails", "mail", "100ms", "400ms", "4.00", "6", "6", "drift"],
    ]
    [row] = cli("baseline", tmp_path, "--least", "7", "-o", "json").json
    assert (row["task"], row["count"], row["is_drift"]) == ("mail", 6, False)
    assert row["recent_p99_ms"] == pytest.approx(400, rel=0.01)


def test_failures_show_what_is_alike(cli: Cli, spark: SparkSession, tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "error": "ValueError",
        "frame": "shop.py:7 in mail",
        "detail": "exhausted",
    }
    happened = [event("failed", job_id=f"j{n}", message=f"no user {n}", **said) for n in range(2)]
    other = event("retrying", job_id="j3", message="closed", error="OSError")
    add_run(events_of(spark, [*happened, other]), tmp_path, run=1)
    ran = cli("failures", tmp_path)
    assert (ran.code, ran.err) == (0, ""), ran
    head, first, second = ran.out.splitlines()
    assert head.split()[:5] == ["TENANT", "QUEUE", "TASK", "DEAD", "COUNT"]
    assert first.endswith("shop.py:7 in mail  ValueError: no user <number>")
    assert second.endswith("OSError: closed")

    ran = cli("failures", tmp_path, "-n", "1", "-o", "json")
    assert ran.err == "There are more than these 1: raise --limit, or narrow it down.\n"
    [row] = ran.json
    assert (row["count"], row["dead"], row["jobs"]) == (2, 2, 2)
    assert (row["pattern"], row["message"]) == ("no user <number>", "no user 1")
    assert row["first_seen"] == "2026-01-31T02:30:00Z"
    assert cli("failures", tmp_path, "--since", "2026-02-01T00:00Z", "-o", "json").json == []


def test_a_replay_shows_what_it_would_do_and_does_it_once(
    cli: Cli, spark: SparkSession, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    work(url, dead(["a", "b"]))
    add_dead_letters(spark, url, tmp_path)
    told = f"This will enqueue 1 archived dead letter of {tmp_path} again, in tenant 'default' at "
    words = ("replay", tmp_path, "--url", url, "--tenant", "default")

    ran = cli(*words, "--where", "job_id = 'a'", "--dry-run")
    assert (ran.code, ran.out) == (0, "Dry run: nothing was changed.\n")
    assert ran.err.startswith(told)
    assert list(app.queue("orders").jobs("queued")) == []

    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "there is no terminal to ask: pass --yes" in ran.err

    ran = cli(*words, "--where", "job_id = 'a'", "--write-id", "w", "--yes", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    done = {"rows": 1, "added": 1, "duplicates": 0, "queue": "", "write_id": "w"}
    assert ran.json == {**done, "is_known": False, "dry_run": False}
    assert [job.id for job in app.queue("orders").jobs("queued")] == ["replay:w:a"]
    ran = cli(*words, "--write-id", "w", "--yes")
    assert ran.out == "Replay w was made before, and brought in 1 job.\n"

    ran = cli(*words, "--queue", "more", "--yes")
    assert re.fullmatch(r"2 jobs enqueued as replay \w{26}\.\n", ran.out), ran
    assert len(list(app.queue("more").jobs("queued"))) == 2


def test_pictures_are_drawn_where_they_are_wanted(
    cli: Cli, spark: SparkSession, tmp_path: Path
) -> None:
    root, folder = tmp_path / "archive", tmp_path / "pictures"
    attempts(spark, root)
    cli("rollup", root)
    ran = cli("plot", root, folder, "--queue", "mails", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == [f"{folder}/{name}.png" for name in ("throughput", "latency", "errors")]
    assert all(Path(name).read_bytes().startswith(b"\x89PNG") for name in ran.json)


def test_small_files_become_one_and_old_days_go(
    cli: Cli, spark: SparkSession, tmp_path: Path
) -> None:
    for run in (1, 2):
        add_run(events_of(spark, [event("active", number=run)]).coalesce(1), tmp_path, run=run)
    ran = cli("compact", tmp_path)
    assert (ran.code, ran.err) == (0, ""), ran
    assert ran.out == "1 hour compacted: 2 files became 1.\n"
    assert cli("compact", tmp_path, "-o", "json").json == {
        "hours": 0,
        "files_before": 0,
        "files_after": 0,
    }

    words = ("retain", tmp_path, "--days", "30")
    assert "there is no terminal to ask: pass --yes" in cli(*words).err
    ran = cli(*words, "--dry-run")
    assert (ran.code, ran.out) == (0, "Dry run: nothing was changed.\n")
    told = f"This will delete 1 day of events or dead letters of {tmp_path}, all before 20"
    assert ran.err.startswith(told)
    assert cli(*words, "--yes").out == "1 day of events or dead letters deleted.\n"
    assert cli(*words, "--yes", "-o", "json").json == {"partitions": 0, "dry_run": False}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("rollup", 'Nothing is archived in {}: "headrace pipeline archive" does that.'),
        ("baseline", 'There are no roll-ups in {}: "headrace pipeline rollup" makes them.'),
        ("failures", "No failure is archived in {}."),
    ],
)
def test_where_there_is_nothing_that_is_said(
    cli: Cli, command: str, told: str, tmp_path: Path
) -> None:
    ran = cli(command, tmp_path)
    assert (ran.code, ran.out, ran.err) == (0, "", told.format(tmp_path) + "\n")


@pytest.mark.parametrize(
    "words",
    [
        ("rollup",),
        ("baseline",),
        ("failures",),
        ("plot",),
        ("compact",),
        ("retain", "--days", "3", "--yes"),
    ],
    ids=lambda words: words[0],
)
def test_a_folder_that_is_not_there_is_refused(
    cli: Cli, words: tuple[str, ...], tmp_path: Path
) -> None:
    ran = cli(*words, tmp_path / "nowhere")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert ran.err.startswith(f"Error: there is no folder '{tmp_path}/nowhere': ")


def test_what_is_wrong_is_said_in_a_line(cli: Cli, tmp_path: Path) -> None:
    for words, told in (
        (("rollup", tmp_path, "--conf", "x"), "'x' is not a setting: use NAME=VALUE"),
        (("rollup", tmp_path, "--conf", "x=1"), "'x' is no setting of Spark: their names begin"),
        (("rollup", tmp_path, "--tenant", "a b"), "tenant 'a b' is not valid"),
        (("replay", tmp_path, "--url", "memory://", "--dry-run"), "the memory of one process"),
        (("replay", tmp_path, "--allow-eviction", "-y"), "use no server that may throw jobs"),
        (("rollup",), "Missing argument 'ROOT'"),
    ):
        ran = cli(*words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
        assert told in ran.err


def test_a_storage_that_is_away_has_its_exit_code(cli: Cli, tmp_path: Path) -> None:
    ran = cli("replay", tmp_path, "--url", "redis://127.0.0.1:1", "--yes")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1), ran


def test_an_error_of_sparks_is_a_line_too(cli: Cli) -> None:
    ran = cli("rollup", "nosuch://bucket/archive")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran
    assert ran.err.startswith("Error: Spark: ")
    assert 'No FileSystem for scheme "nosuch"' in ran.err

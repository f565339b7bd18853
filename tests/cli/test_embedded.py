"""What the command line says of embedded storages, where these differ from a server."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from headrace import App, JobState
from headrace.storage.sqlite.engine.location import FILE_NAME
from headrace.storage.sqlite.storage import SqliteStorage
from tests.cli.conftest import APP, Cli
from tests.support.processes import WorkerProcess
from tests.support.until import until

pytestmark = pytest.mark.parametrize("cli_url", ["file"], indirect=True)

LEASE = ("--lease", "1s")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return where the database is."""
    return tmp_path / "data"


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "list"),
        ("queue", "pause", "x"),
        ("job", "list"),
        ("dead", "redrive", "--all"),
        ("workers",),
        ("doctor",),
        ("enqueue", "add", "-q", "x"),
    ],
)
@pytest.mark.parametrize("url", ["memory://", "memory://name"])
def test_the_memory_of_a_process_is_refused_where_it_would_always_be_empty(
    here: Cli, url: str, words: tuple[str, ...]
) -> None:
    ran = here(*words, "--url", url)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: {url} is the memory of one process")
    assert "by --url or HEADRACE_URL" in ran.err


def test_an_app_in_memory_gets_no_job_from_a_command(here: Cli) -> None:
    ran = here("enqueue", "add", "-A", APP, "--args", "[1]", "--url", "memory://")
    assert ran.code == 2
    assert "memory:// is the memory of one process" in ran.err
    ran = here("health", "--url", "memory://")
    assert ran.code == 1
    assert "memory:// is the memory of one process" in ran.err


async def test_a_worker_in_memory_runs_and_says_that_it_is_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Its own handlers and lifespan can enqueue, so it is of use."""
    with WorkerProcess.module(
        "headrace", "worker", APP, "--url", "memory://", directory=tmp_path, env=environment
    ) as worker:
        await until(lambda: "worker.started" in worker.stderr, within=15)
        worker.term()
        assert await worker.wait() == 0
    assert "worker.alone" in worker.stderr
    assert "only this process can enqueue jobs for it" in worker.stderr


def test_the_doctor_looks_at_the_database(cli: Cli, here: Cli, directory: Path) -> None:
    assert here("enqueue", "t", "-q", "x", "--id", "j").code == 0
    ran = cli("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].split() == ["TOPIC", "LEVEL", "FINDING"]
    found = {line["topic"]: line for line in here("doctor", "-o", "json").json}
    assert {line["level"] for line in found.values()} == {"ok"}
    assert found["version"]["detail"] == f"SQLite {sqlite3.sqlite_version}"
    assert found["persistence"]["detail"] == "sync=full: no accepted job is lost"
    assert str(directory / FILE_NAME) in found["disk"]["detail"]
    assert "integrity" in found


def test_the_doctor_finds_damage(here: Cli, directory: Path) -> None:
    here("enqueue", "t", "-q", "x")
    with sqlite3.connect(directory / FILE_NAME) as connection:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'jobs_purged'"
        [page] = connection.execute(sql).fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with (directory / FILE_NAME).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 100)
    ran = here("doctor", "-o", "json")
    assert ran.code == 1
    assert ran.err == "Error: integrity: see what the doctor found above\n"
    (found,) = [line for line in ran.json if line["topic"] == "integrity"]
    assert found["level"] == "error"
    assert f"Page {page}" in found["detail"]


@pytest.mark.parametrize("words", [("--dry-run",), ("--yes",), ()])
def test_a_database_has_no_libraries_to_remove(here: Cli, words: tuple[str, ...]) -> None:
    ran = here("doctor", "--remove-old-libraries", *words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Dry run: nothing was changed.\n" if words == ("--dry-run",) else "There was nothing to "
        "remove.\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [("queue", "list"), ("doctor",), ("enqueue", "add", "-q", "x"), ("worker", APP)],
)
def test_a_place_where_no_database_can_be_is_exit_code_3(
    here: Cli, cli: Cli, directory: Path, words: tuple[str, ...]
) -> None:
    shutil.rmtree(directory)
    directory.write_text("a file")
    ran = (cli if words[0] == "worker" else here)(*words)
    assert ran.code == 3, ran
    assert f"Error: {directory} is a file: name a directory" in ran.err
    assert "is it running there" not in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "list"),
        ("queue", "purge", "x", "--yes"),
        ("job", "list"),
        ("job", "show", "x"),
        ("job", "cancel", "x"),
        ("dead", "list"),
        ("dead", "redrive", "--all"),
        ("workers",),
        ("doctor",),
        ("doctor", "--repair"),
        ("health",),
    ],
)
@pytest.mark.parametrize("has_directory", [False, True])
def test_f20_what_looks_at_a_storage_makes_none(
    here: Cli, directory: Path, words: tuple[str, ...], *, has_directory: bool
) -> None:
    """F20: a directory that was mistyped would else look like an empty storage, and stay."""
    shutil.rmtree(directory)
    if has_directory:
        directory.mkdir()
    ran = here(*words)
    assert (ran.code, ran.out) == (1 if words == ("health",) else 3, "")
    assert ran.err.startswith(f"Error: there is no storage in {directory}: ")
    assert list(directory.parent.rglob("*")) == [directory] * has_directory


@pytest.mark.parametrize(
    "words", [("queue", "pause", "x"), ("queue", "resume", "x"), ("enqueue", "t", "-q", "x")]
)
def test_f20_what_writes_makes_the_storage(
    here: Cli, directory: Path, words: tuple[str, ...]
) -> None:
    """F20: a queue may be paused before its first job."""
    shutil.rmtree(directory)
    assert here(*words).code == 0
    assert (directory / FILE_NAME).exists()


async def test_a_worker_whose_directory_is_removed_exits(
    environment: dict[str, str], tmp_path: Path, directory: Path
) -> None:
    """Fault 52: a supervisor starts it on what is there then; nothing is written meanwhile."""
    with WorkerProcess.module(
        "headrace", "worker", APP, *LEASE, directory=tmp_path, env=environment
    ) as worker:
        await until(lambda: "worker.started" in worker.stderr, within=15)

        def is_removed() -> bool:
            # The worker may be about to open another file in it.
            shutil.rmtree(directory, ignore_errors=True)
            return not directory.exists()

        await until(is_removed)
        assert await worker.wait(15) == 3
    last = worker.stderr.splitlines()[-1]
    assert last.startswith("Error: the database file ")
    assert "was removed or replaced while it was in use" in last
    assert "Traceback" not in worker.stderr
    assert "data" not in os.listdir(tmp_path)


async def test_a_worker_whose_disk_fails_exits_and_the_next_one_goes_on(
    environment: dict[str, str], tmp_path: Path, directory: Path
) -> None:
    """Fault 52: after an EIO of fsync it claims nothing more, and records nothing."""
    app: App[None] = App(environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"])
    async with app:
        with WorkerProcess.module(
            "headrace", "worker", "tests.apps.failing_app", *LEASE,
            directory=tmp_path, env=environment,
        ) as worker:  # fmt: skip
            # Enqueued after the fork, which closes the file here: who opens one that nobody has
            # open takes what was not synced for committed.
            job = await app.enqueue("lose_disk", queue="faults")
            assert await worker.wait(15) == 1
        last = worker.stderr.splitlines()[-1]
        assert last.startswith(f"Error: SQLite in {directory}: disk I/O error (the disk failed")
        assert "Traceback" not in worker.stderr
        record = await job.status()
        assert (record.state, record.failures) == (JobState.ACTIVE, 0)
    storage = SqliteStorage(app.url).for_tenant(app.tenant)
    assert {finding.level for finding in await storage.diagnose()} == {"ok"}
    await storage.aclose()

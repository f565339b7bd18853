"""The commands of the pipeline do what their functions do, in the session of this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.cli import main
from tests.cli.conftest import Ran
from tests.spark.support.archives import AT, add_run, event, events_of

Cli = Callable[..., Ran]
TENANT = "shop"


@pytest.fixture
def cli(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """Return what runs a command of the pipeline here, on the tenant of the tests."""
    monkeypatch.setenv("HEADRACE_TRACEBACK", "")
    monkeypatch.setenv("HEADRACE_TENANT", TENANT)

    def run(*words: str | Path) -> Ran:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["headrace", "pipeline", *map(str, words)])
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


def test_a_rollup_says_what_it_has_made(cli: Cli, spark: SparkSession, tmp_path: Path) -> None:
    attempts(spark, tmp_path)
    ran = cli("rollup", tmp_path, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == {"partitions": 3, "rows": 3, "final_until": "2026-01-31T03:30:00Z"}

    ran = cli("rollup", tmp_path, "--since", "2026-01-31T00:00Z")
    assert ran.out.startswith(
        "3 partitions with 3 rows made anew.\nWhat happened before 2026-01-31 03:30:00 UTC ("
    ), ran


def test_where_nothing_is_archived_that_is_said(cli: Cli, tmp_path: Path) -> None:
    ran = cli("rollup", tmp_path)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        f'Nothing is archived in {tmp_path}: "headrace pipeline archive" does that.\n'
    )


def test_what_is_wrong_is_said_in_a_line(cli: Cli, tmp_path: Path) -> None:
    for words, told in (
        (("rollup", tmp_path, "--conf", "x"), "'x' is not a setting: use NAME=VALUE"),
        (("rollup", tmp_path, "--conf", "x=1"), "'x' is no setting of Spark: their names begin"),
        (("rollup", tmp_path, "--tenant", "a b"), "tenant 'a b' is not valid"),
        (("rollup",), "Missing argument 'ROOT'"),
    ):
        ran = cli(*words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
        assert told in ran.err


def test_an_error_of_sparks_is_a_line_too(cli: Cli) -> None:
    ran = cli("rollup", "nosuch://bucket/archive")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran
    assert ran.err.startswith("Error: Spark: ")
    assert 'No FileSystem for scheme "nosuch"' in ran.err

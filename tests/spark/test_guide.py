"""The programs of the guide on Spark run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace import SyncApp
from tests.spark.support.worked import DEAD, DONE, work
from tests.support.processes import ROOT
from tests.support.threads import working

GUIDE = (ROOT / "docs" / "guides" / "spark.md").read_text()


def program(name: str) -> str:
    """Return the program that begins with its name."""
    programs = re.findall(
        rf"^```python no-run\n# {re.escape(name)}\n(.*?)^```$", GUIDE, re.M | re.S
    )
    [source] = programs
    return str(source)


def test_rows_become_jobs_and_come_back(
    spark: SparkSession, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = SyncApp(redis_url)

    @app.task(name="shop.charge", queue="orders", max_attempts=1)
    def charge(customer: str, cents: int) -> str:
        if not cents:
            raise ValueError(f"{customer} owes nothing")
        return f"charged {cents}"

    source = program("orders.py").replace("redis://localhost:6379", redis_url)
    with working(app):
        exec(compile(source, "orders.py", "exec"), {})  # noqa: S102 (it is ours)
    shown = capsys.readouterr().out
    assert "2 added, 0 were there" in shown
    assert '|     1|     ann|completed|"charged 250"|' in shown
    assert re.search(r"ValueError\|bob owes nothing\|.*\|    1\|", shown)


def test_an_archive_is_made_and_read(
    spark: SparkSession, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work(redis_url, {"a": DEAD, "b": DONE})
    source = program("archive.py").replace("redis://localhost:6379", redis_url)
    source = source.replace("/var/lib/shop/archive", str(tmp_path / "archive"))
    exec(compile(source, "archive.py", "exec"), {})  # noqa: S102 (it is ours)
    shown = capsys.readouterr().out
    assert "8 events, 1 dead letters, 0 lost" in shown
    assert "|charge|ValueError|    1|" in shown
    assert '|     a|no cents|{"of":"a"}|' in shown

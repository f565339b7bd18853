"""How far Spark is, as a user sees it who watches a terminal or a log."""

from __future__ import annotations

import io
import sys

import pytest
from pyspark.sql import SparkSession

from headrace.spark.progress import drawn, spark_followed


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_unless_it_is_asked_for(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with spark_followed(spark, "Rows", is_shown=False), drawn("Jobs", is_shown=False) as draw:
        assert spark.range(3).count() == 3
        draw(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_log_has_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with drawn("Jobs", is_shown=True) as draw:
        for done in (0, 10, 1_000, 1_050, 2_000, 9_999, 10_000, 10_000):
            draw(done, 10_000)
    assert capsys.readouterr().err.splitlines() == [
        "Jobs: 1,000 of 10,000",
        "Jobs: 2,000 of 10,000",
        "Jobs: 9,999 of 10,000",
        "Jobs: 10,000 of 10,000",
    ]


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Tty()
    monkeypatch.setattr(sys, "stderr", terminal)
    with drawn("Jobs", is_shown=True) as draw:
        draw(0, 4)
        draw(2, 8)
        draw(8, 8)
    text = terminal.getvalue()
    assert "Jobs" in text
    assert " 25%" in text
    assert "100%" in text


def test_tasks_of_spark_are_counted_of_this_block_alone(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with spark_followed(spark, "Rows", is_shown=True):
            assert spark.range(6, numPartitions=3).selectExpr("id % 2 as odd").collect()
        assert capsys.readouterr().err.splitlines()[-1] == "Rows: 3 of 3"


def test_a_group_of_the_users_stays(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "what I do")
    try:
        assert spark.range(6, numPartitions=3).collect()
        with spark_followed(spark, "Rows", is_shown=True):
            assert spark.range(6, numPartitions=2).collect()
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert capsys.readouterr().err.splitlines()[-1] == "Rows: 2 of 2"

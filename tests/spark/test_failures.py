"""Failures are told apart by what they say and where, not by what varies in it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidOption
from headrace.spark.pipeline import failures
from headrace.spark.pipeline.failures import pattern_of, patterns
from tests.spark.support.archives import AT, add_run, event, events_of

pytestmark = pytest.mark.usefixtures("compiled")

MINUTE = timedelta(minutes=1)

MESSAGES = {
    "connection refused": "connection refused",
    "timed out after 30.5s": "timed out after <number>s",
    "order 17 of -3 costs 1,204.50 (1e-9)": "order <number> of <number> costs <number> (<number>)",
    "2026-01-31T12:00:05Z is over": "<number>-<number>-<number>T<number>Z is over",
    "10.0.0.7:6379 said no": "<number> said no",
    "no user 'bob smith' here": "no user <text> here",
    "can't read \"it's\" or `x`": "can't read <text> or <text>",
    "b'\\x00' is not bytes' own": "<text> is not bytes' own",
    "no mail to a.b+c@mail.example.org!": "no mail to <email>!",
    "job 0b8ecb7e-6c44-4a1e-9a5e-0f2d1f4f7d11": "job <uuid>",
    "<Foo object at 0x7f01ab>": "<Foo object at <hex>>",
    "commit deadbeef01 and facade": "commit <hex> and facade",
    "job 01HZX5J7T0QK8V9M3N4P5R6S7T": "job <id>",
    "no file /srv/data/u-17/tmpab12.csv: x": "no file /srv/data/<name>/<name>: x",
    "rows 1, 2, 3 and 4": "rows <number>, … and <number>",
    "words " * 50: "words " * 19 + "words…",
}


def test_a_pattern_keeps_words_and_drops_what_varies(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(message,) for message in MESSAGES], "message string")
    found = frame.select("message", pattern_of(F.col("message")).alias("pattern")).collect()
    assert {row["message"]: row["pattern"] for row in found} == MESSAGES


def test_messages_that_were_cut_have_a_pattern_together(spark: SparkSession) -> None:
    said = [f"user {'9' * n} has no right to read '{'x' * 300}'"[:200] for n in range(1, 40)]
    said += [f"user {'9' * n} may not {'do this and that ' * 30}"[:200] for n in range(1, 40)]
    frame = spark.createDataFrame([(message,) for message in said], "message string")
    found = frame.select(pattern_of(F.col("message")).alias("pattern")).distinct().collect()
    assert len(found) == 2
    assert "user <number> has no right to read <text>" in [row["pattern"] for row in found]


def failed(
    kind: str, message: str, minute: int, *, line: int = 7, **more: object
) -> dict[str, object]:
    told = {
        "error": "ValueError",
        "message": message,
        "frame": f"/srv/r{line}/shop/mail.py:{line} in send",
        "at": AT + minute * MINUTE,
        "start": 1,
        "incarnation": "w1",
    }
    return {**event(kind), **told, **more}


def found_in(spark: SparkSession, events: list[Mapping[str, Any]]) -> list[Row]:
    frame = events_of(spark, events)
    return patterns(frame, frame).collect()


def test_what_fails_alike_is_one_row(spark: SparkSession) -> None:
    events: list[Mapping[str, Any]] = [
        {**event("joined", task=None), "incarnation": "w1", "app_version": "1.9"},
        {**event("joined", task=None), "incarnation": "w2", "app_version": "1.10"},
        failed("retrying", "no user 17", 0),
        failed("failed", "no user 17", 1, detail="exhausted"),
        failed("retrying", "no user 4", 2, job_id="j2", line=9, incarnation="w2"),
        failed("retrying", "no user 4", 3, job_id="j2", incarnation="gone"),
        failed("retrying", "no user 4", 9, error="KeyError"),
        failed("retrying", "no user 4", 9, task="charge"),
        failed("retrying", "no user 4", 9, frame="/srv/r7/shop/mail.py:7 in render"),
        failed("retrying", "no group 4", 9),
        event("completed", at=AT, start=1),
    ]
    rows = found_in(spark, events)
    assert len(rows) == 5
    [row] = [row for row in rows if row["count"] > 1]
    assert rows[0] == row
    assert (row["tenant"], row["queue"], row["task"]) == ("shop", "mails", "mail")
    assert (row["error"], row["pattern"]) == ("ValueError", "no user <number>")
    assert (row["count"], row["dead"], row["retried"], row["stalled"]) == (4, 1, 3, 0)
    assert (row["jobs"], row["example_job_id"], row["message"]) == (2, "j2", "no user 4")
    assert row["frame"] == "/srv/r7/shop/mail.py:7 in send"
    assert row["first_seen"].astimezone(UTC) == AT
    assert row["last_seen"].astimezone(UTC) == AT + 3 * MINUTE
    assert row["versions"] == ["1.10", "1.9"]


def test_a_death_that_ends_a_job_went_wrong_once(spark: SparkSession) -> None:
    stalled: dict[str, Any] = {"error": "WorkerLost", "frame": None}
    events: list[Mapping[str, Any]] = [
        failed("stalled", "gone", 0, **stalled),
        failed("stalled", "gone", 1, **stalled),
        failed("failed", "gone", 1, detail="stalled", **stalled),
    ]
    [row] = found_in(spark, events)
    assert (row["count"], row["stalled"], row["dead"], row["jobs"]) == (2, 2, 1, 1)


def test_what_has_no_error_is_told_by_its_reason(spark: SparkSession) -> None:
    [row] = found_in(spark, [event("failed", detail="expired")])
    assert (row["error"], row["pattern"], row["frame"]) == ("expired", None, None)
    assert (row["count"], row["dead"], row["versions"]) == (1, 1, [])


@pytest.mark.slow
def test_a_span_of_an_archive_is_looked_at(spark: SparkSession, tmp_path: Path) -> None:
    assert failures(spark, tmp_path).collect() == []
    joined = {**event("joined", task=None), "incarnation": "w1", "app_version": "7"}
    other = {**failed("retrying", "x", 1), "tenant": "other"}
    events = [joined, *(failed("retrying", "x", minute) for minute in (0, 30, 60, 90)), other]
    add_run(events_of(spark, events), tmp_path, run=1)
    [row] = failures(
        spark, tmp_path, since=AT + 30 * MINUTE, until=AT + 90 * MINUTE, tenant="shop"
    ).collect()
    assert (row["count"], row["versions"]) == (2, ["7"])
    assert len(failures(spark, tmp_path).collect()) == 2


def test_what_is_asked_for_is_checked_first(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"until=.* is naive"):
        failures(spark, tmp_path, until=datetime(2026, 1, 31))  # noqa: DTZ001
    with pytest.raises(InvalidOption, match="tenant 'a b' is not valid"):
        failures(spark, tmp_path, tenant="a b")

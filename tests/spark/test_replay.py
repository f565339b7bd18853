"""Archived dead letters become jobs again: those that were asked for, as they were, and once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace import Context, InvalidOption, Job, SyncApp
from headrace.spark.pipeline import replay
from headrace.storage.connect import open_blocking
from headrace.storage.steps import at_once
from tests.spark.support.archives import add_dead_letters
from tests.spark.support.worked import dead, work
from tests.support.threads import blocked_until, working

OPTIONS = (
    b'{"headers":{"to":"us"},"keep_ms":240000,"failed":{"id":"f","task":"t","reason":"stalled"}}\n'
    b'{"max_attempts":7}'
)
"""Of a fail job, as only storages write them."""


class Shop:
    """Tasks that fail until they are mended, and what their handlers were given."""

    def __init__(self, app: SyncApp[None]) -> None:
        self.is_mended = False
        self.charged: list[tuple[int, dict[str, str]]] = []
        self.app = app

        @app.task(name="charge", queue="orders", max_attempts=1)
        def charge(context: Context, cents: int) -> int:
            if not self.is_mended:
                raise ValueError(f"{cents} are too many" if cents > 10 else "it is closed")
            self.charged.append((cents, dict(context.headers)))
            return cents

        self.charge = charge

    def jobs(self, *amounts: int) -> list[Job[int]]:
        """Return jobs that ask for more than a plain one."""
        return [
            self.charge.options(
                id=f"c{cents}", priority=8, headers={"to": "us"}, keep=120, timeout=5
            ).job(cents)
            for cents in amounts
        ]

    def run(self, *handles: Any) -> None:
        """Work jobs off."""
        with working(self.app):
            blocked_until(lambda: all(handle.status().state.is_terminal for handle in handles))


@pytest.fixture
def shop(app: SyncApp[None]) -> Shop:
    return Shop(app)


def ids(app: SyncApp[None], queue: str, state: str) -> set[str]:
    return {job.id for job in app.queue(queue).jobs(state)}


def test_what_is_asked_for_runs_again_as_it_was(
    spark: SparkSession, shop: Shop, url: str, tmp_path: Path
) -> None:
    shop.run(*shop.app.enqueue_many(shop.jobs(5, 7, 100)))
    add_dead_letters(spark, url, tmp_path)
    shop.is_mended = True

    where = "message LIKE '%closed' AND priority = 8"
    assert replay(spark, tmp_path, url=url, where=where, dry_run=True).rows == 2
    report = replay(spark, tmp_path, url=url, where=where, write_id="w1")
    assert (report.rows, report.added, report.duplicates, report.write_id) == (2, 2, 0, "w1")

    again = [shop.app.job(f"replay:w1:c{n}", queue="orders", task=shop.charge) for n in (5, 7)]
    for handle in again:
        status = handle.status()
        assert (status.priority, status.lane, status.failures) == (8, "default", 0)
        assert status.options == {
            "headers": {"to": "us"},
            "keep_ms": 120_000,
            "result_ttl_ms": 120_000,
            "timeout_ms": 5000,
        }
    shop.run(*again)
    assert [handle.result() for handle in again] == [5, 7]
    assert sorted(shop.charged) == [(5, {"to": "us"}), (7, {"to": "us"})]
    assert ids(shop.app, "orders", "failed") == {"c5", "c7", "c100"}


def asked_again(url: str, job_id: str, names: Iterable[str]) -> dict[str, Any]:
    """Return what a replayed job asks for."""
    with closing(open_blocking(url)) as storage:
        record = at_once(storage.get("orders", job_id))
    return {name: getattr(record, name) for name in names}


def test_a_replayed_job_asks_for_all_that_its_dead_letter_did(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    # Nor need its arguments be such as a handler here could read.
    asked: dict[str, Any] = {
        "payload": b"[1]",
        "priority": 8,
        "max_stalls": 7,
        "keep_ms": 120_000,
        "on_failed": "refund",
        "gates": "till\t7\t\nstripe\t\t\nfair\tada\t",
        "slots": 3,
        "options": OPTIONS,
    }
    work(url, dead(["a"]), **asked)
    add_dead_letters(spark, url, tmp_path / "new")
    assert replay(spark, tmp_path / "new", url=url, write_id="new").added == 1
    kept = {**asked, "gates": "till\t7\nstripe\t\nfair:default:8\tada"}
    assert asked_again(url, "replay:new:a", asked) == kept

    lacking = ["max_stalls", "keep_ms", "on_failed", "limit_keys", "fair_key", "slots"]
    add_dead_letters(spark, url, tmp_path / "old", without=lacking)
    assert replay(spark, tmp_path / "old", url=url, write_id="old").added == 1
    old = {**asked, "max_stalls": 3, "keep_ms": 240_000, "on_failed": "", "gates": "", "slots": 1}
    assert asked_again(url, "replay:old:a", asked) == old


def test_the_same_replay_brings_nothing_twice_even_if_its_jobs_are_gone(
    spark: SparkSession, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    work(url, dead(["a", "b"]), queue="orders")
    work(url, dead(["a"]), queue="mails")
    add_dead_letters(spark, url, tmp_path)
    first = replay(spark, tmp_path, url=url, write_id="again")
    assert (first.rows, first.added, first.is_known) == (3, 3, False)
    assert ids(app, "orders", "queued") == {"replay:again:a", "replay:again:b"}
    assert ids(app, "mails", "queued") == {"replay:again:a"}

    assert app.queue("orders").purge("queued", all_jobs=True) == 2
    second = replay(spark, tmp_path, url=url, write_id="again")
    assert (second.rows, second.added, second.is_known) == (3, 3, True)
    assert ids(app, "orders", "queued") == set()

    another = replay(spark, tmp_path, url=url, where="queue = 'orders'")
    assert another.added == 2
    assert ids(app, "orders", "queued") == {f"replay:{another.write_id}:{n}" for n in "ab"}


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_a_job_that_failed_twice_is_replayed_once_and_may_go_elsewhere(
    spark: SparkSession, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    long = "l" * 250
    work(url, dead(["a", long]), queue="orders")
    work(url, dead(["a"]), queue="mails")
    add_dead_letters(spark, url, tmp_path)
    add_dead_letters(spark, url, tmp_path, run=2)  # as if both had been redriven and failed again
    report = replay(spark, tmp_path, url=url, queue="second-try", write_id="w")
    assert (report.rows, report.added, report.queue) == (3, 3, "second-try")
    digest = hashlib.sha256(f"orders:{long}".encode()).hexdigest()
    assert ids(app, "second-try", "queued") == {
        "replay:w:orders:a",
        "replay:w:mails:a",
        f"replay:w:{digest}",
    }


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_a_limit_takes_those_that_failed_first(
    spark: SparkSession, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    for name in ("b", "a", "c"):
        work(url, dead([name]))
    add_dead_letters(spark, url, tmp_path)
    assert replay(spark, tmp_path, url=url, limit=2, write_id="w").added == 2
    assert ids(app, "orders", "queued") == {"replay:w:b", "replay:w:a"}


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_only_the_tenants_own_are_replayed(spark: SparkSession, url: str, tmp_path: Path) -> None:
    work(url, dead(["a"]))
    add_dead_letters(spark, url, tmp_path)
    report = replay(spark, tmp_path, url=url, tenant="others")
    assert (report.rows, report.added, report.is_known) == (0, 0, False)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"where": "messag = 'x'"}, r"where=\"messag = 'x'\" is no condition .*`message`"),
        ({"where": "queue ="}, r"where='queue =' is no condition .*: \[PARSE_SYNTAX_ERROR\]"),
        ({"where": "priority"}, r"where='priority' is no condition"),
        ({"queue": "a b"}, "queue 'a b' is not valid"),
        ({"tenant": "a b"}, "tenant 'a b' is not valid"),
        ({"limit": 0}, "limit=0 is out of bounds"),
        ({"write_id": "x" * 129}, "write_id 'x+'… is not valid: use 1 to 128 bytes"),
    ],
    ids=["column", "syntax", "type", "queue", "tenant", "limit", "write_id"],
)
def test_what_is_wrong_is_said_before_anything_is_sent(
    spark: SparkSession, said: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidOption, match=told):
        replay(spark, tmp_path, url="redis://127.0.0.1:1", **said)

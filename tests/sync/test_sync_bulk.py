"""Bulk writes of code without an event loop: all or none, and a second run brings in nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace import EnqueueOutcome, Job, SyncApp, SyncTask, UsageError
from tests.support.threads import at_a_time


@pytest.fixture
def add(app: SyncApp[None]) -> SyncTask[[int, int], int]:
    @app.task(name="add", queue="sums")
    def add(left: int, right: int) -> int:
        return left + right

    return add


def queued(app: SyncApp[None]) -> int:
    return app.queue("sums").stats().queued


def test_all_jobs_are_there_when_the_block_has_ended(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    with app.bulk("import", queue="sums") as bulk:
        bulk.add(add.job(0, 0))
        bulk.add_many(add.job(n, n) for n in range(1_233))
        assert queued(app) == 0
        with pytest.raises(UsageError, match="no report"):
            bulk.report  # noqa: B018
    assert (bulk.report.rows, bulk.report.added, bulk.is_known) == (1_234, 1_234, False)
    assert queued(app) == 1_234
    with app.bulk("import", queue="sums") as again:
        again.add_many(add.job(n, n) for n in range(10))
    assert again.is_known
    assert queued(app) == 1_234
    report = app.write_report("import", queue="sums")
    assert report is not None
    assert report.added == 1_234
    assert app.write_report("another", queue="sums") is None


def test_an_error_discards_them(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    def jobs() -> Iterator[Job[int]]:
        yield from (add.job(n, n) for n in range(700))
        raise LookupError("no more")

    with pytest.raises(LookupError), app.bulk("import", queue="sums") as bulk:
        bulk.add_many(jobs())
    assert queued(app) == 0
    assert app.write_report("import", queue="sums") is None
    other = add.options(queue="default").job(1, 1)
    with (
        pytest.raises(UsageError, match="is of queue 'default'"),
        app.bulk("import", queue="sums") as bulk,
    ):
        bulk.add(other)
    with pytest.raises(UsageError, match="has ended"):
        bulk.add(add.job(1, 1))


def test_threads_share_a_write(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    with app.bulk("import", queue="sums") as bulk:
        at_a_time(4, lambda number: bulk.add_many(add.job(number, n) for n in range(600)))
    assert bulk.report.added == queued(app) == 2_400


def test_dead_letters_may_stay(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    job = add.options(id="one")
    job.enqueue(1, 1).cancel()
    [stays] = app.enqueue_many([job.job(1, 1)], replace_ended=False)
    assert stays.outcome is EnqueueOutcome.DUPLICATE
    [replaces] = app.enqueue_many([job.job(1, 1)])
    assert replaces.outcome is EnqueueOutcome.QUEUED

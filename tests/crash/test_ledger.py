"""The checker rejects histories that must not be: a blind one would pass every crash test."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import Worker
from headrace.testing import EventLog, running
from tests.apps.crash_app import QUEUE, producer
from tests.support.ledger import Entry, Ledger, check_ledger, overlaps
from tests.support.until import patience


def test_lines_of_a_ledger_are_read_as_they_were_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.entries() == []
    ledger.write("start", "a", 1, "w1")
    Ledger(ledger.path).write("start", "b", 1, "w2")
    ledger.write("end", "a", 1, "w1")
    assert [(e.kind, e.job_id, e.epoch, e.worker) for e in ledger.entries()] == [
        ("start", "a", 1, "w1"),
        ("start", "b", 1, "w2"),
        ("end", "a", 1, "w1"),
    ]
    assert [e.job_id for e in ledger.starts("b")] == ["b"]


def test_a_run_beside_an_earlier_one_is_an_overlap() -> None:
    first = Entry("start", "a", 1, "w1", 1.0)
    second = Entry("start", "a", 2, "w2", 2.0)
    other = Entry("start", "b", 1, "w2", 2.1)
    left = Entry("cut", "a", 1, "w1", 1.5)
    assert overlaps([first, second, other]) == [second]
    assert overlaps([first, left, second, other]) == []


@pytest.mark.parametrize("wrong", ["unknown", "again", "unseen", "late"])
async def test_the_checker_rejects(wrong: str, storage_url: str, tmp_path: Path) -> None:
    """A job that nobody enqueued, a start too many, a start too few, an epoch never claimed."""
    ledger = Ledger(tmp_path / "ledger")
    async with producer(storage_url) as app, running(Worker(app, emit=EventLog())):
        job = await app.enqueue("echo", value=1)
        await job.result(timeout=patience(5))
        if wrong != "unseen":
            ledger.write("start", job.id, 1, "w")
            await check_ledger(app, ledger, [job.id], queue=QUEUE)
        match wrong:
            case "unknown":
                ledger.write("start", "stranger", 1, "w")
            case "again":
                ledger.write("start", job.id, 1, "w")
            case "late":
                ledger.write("start", job.id, 2, "w")
        with pytest.raises(AssertionError):
            await check_ledger(app, ledger, [job.id], queue=QUEUE)

"""What splits its jobs into calls itself, and what commits the stages of several writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from headrace.job import EnqueueOutcome
from headrace.outage import ClientOutage
from headrace.request import JobRequest
from headrace.staging import WriteTerms, write_terms
from headrace.storage.blocking import BlockingStorage
from headrace.storage.connect import open_blocking
from headrace.storage.steps import at_once
from headrace.storage.values import StageInfo
from headrace.sync.asking import BlockingAsker
from headrace.sync.enqueues import Enqueues
from headrace.writing import Writing

DUPLICATE, QUEUED = EnqueueOutcome.DUPLICATE, EnqueueOutcome.QUEUED


@pytest.fixture
def storage(storage_url: str) -> Iterator[BlockingStorage]:
    storage = open_blocking(storage_url)
    yield storage
    storage.close()


@pytest.fixture
def terms() -> WriteTerms:
    return write_terms(
        "import-7", queue="a", batch=0, replace_ended=True, stage_ttl=60.0, keep=60.0
    )


def requests(*ids: str, queue: str = "a") -> list[JobRequest]:
    return [JobRequest(one, queue, "load", b"{}", is_plain=True) for one in ids]


def staged(storage: BlockingStorage, terms: WriteTerms, *ids: str) -> StageInfo:
    """Stage jobs as a writer that does not commit."""
    writing = Writing(terms, lambda: BlockingAsker(storage, retry_for_s=1.0))
    at_once(writing.begin())
    writing.staging.add(requests(*ids))
    writing.staging.fill()
    at_once(writing.send())
    return writing.staging.info


def committed(storage: BlockingStorage, terms: WriteTerms, stages: Sequence[StageInfo]) -> Writing:
    writing = Writing(terms, lambda: BlockingAsker(storage, retry_for_s=1.0))
    at_once(writing.commit_stages(stages))
    return writing


def test_calls_are_sent_as_their_maker_has_split_them(storage: BlockingStorage) -> None:
    enqueues = Enqueues(storage, retry_for_s=1.0, outage=ClientOutage())
    calls = [requests("1"), requests("2", "1"), requests("1", queue="b")]
    stored = list(enqueues.in_calls(calls))
    assert [jobs for jobs, _ in stored] == calls
    assert [outcomes for _, outcomes in stored] == [[QUEUED], [QUEUED, DUPLICATE], [QUEUED]]


def test_stages_of_several_writers_are_committed_in_one_step(
    storage: BlockingStorage, terms: WriteTerms
) -> None:
    stages = [staged(storage, terms, "1", "2"), staged(storage, terms, "3")]
    report = at_once(committed(storage, terms, stages).publish())
    assert (report.rows, report.added, report.is_known) == (3, 3, False)


def test_where_the_write_is_known_what_others_have_staged_is_dropped(
    storage: BlockingStorage, terms: WriteTerms
) -> None:
    stages = [staged(storage, terms, "1", "2"), staged(storage, terms, "3")]
    committed(storage, terms, [])
    assert at_once(committed(storage, terms, stages).publish()).is_known
    tokens = [stage.token for stage in stages]
    assert at_once(storage.discard(terms.queue, terms.write_id, tokens)) == 0


def test_a_commit_that_is_repeated_is_its_own(storage: BlockingStorage, terms: WriteTerms) -> None:
    stages = [staged(storage, terms, "1", "2")]
    committed(storage, terms, stages)
    report = at_once(committed(storage, terms, stages).publish())
    assert (report.rows, report.added, report.is_known) == (2, 2, False)


def test_stages_are_discarded_together(storage: BlockingStorage, terms: WriteTerms) -> None:
    stages = [staged(storage, terms, "1", "2"), staged(storage, terms, "3")]
    writing = Writing(terms, lambda: BlockingAsker(storage, retry_for_s=1.0))
    at_once(writing.discard_stages(stages))
    tokens = [stage.token for stage in stages]
    assert at_once(storage.discard(terms.queue, terms.write_id, tokens)) == 0

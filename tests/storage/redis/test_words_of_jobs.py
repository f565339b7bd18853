"""How jobs are said in words: kind and task of each, or once; what is said wrongly is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import redis

from headrace.errors import StorageFault
from headrace.request import JobRequest
from headrace.storage.base import Storage
from headrace.storage.redis.calls.producer import add_jobs
from headrace.storage.redis.errors import translate
from headrace.testing.contract.fixtures import Dump
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job
from tests.storage.redis.conftest import ROOT
from tests.support.clock import library_with_test_clock

BAD_CALLS: dict[str, list[str]] = {
    "no kind behind the tab": ["\t", "send", "a", "[]"],
    "an unknown kind of id": ["\t315", "send", "a", "[]"],
    "jobs that are not plain": ["\t005", "send", "a", "[]"],
    "a word behind the kind": ["\t0155", "send", "a", "[]"],
    "two tabs": ["\t\t015", "send", "a", "[]"],
    "an id of a tab": ["\ta", "015", "send", "[]"],
    "no payload": ["\t015", "send", "a", "[]", "b"],
    "no jobs": ["\t015", "send"],
    "no task": ["\t015"],
    "a kind with a tab in the general form": ["a", "\t015", "send", "[]"],
}


def said(*jobs: JobRequest) -> Sequence[Any]:
    words: list[Any] = []
    add_jobs(words, jobs)
    return words


def plain(job_id: str, payload: bytes = b"[]", **options: Any) -> JobRequest:
    return a_job(job_id, payload, is_plain=True, **options)


@pytest.mark.parametrize("words", BAD_CALLS.values(), ids=BAD_CALLS)
async def test_a_call_with_a_wrong_kind_is_refused_and_writes_nothing(
    storage: Storage,
    client: ContractClient,
    dump: Dump,
    server: redis.Redis,
    words: list[str],
) -> None:
    await client.enqueue(a_job("x"))
    before, keys = await dump(), set(server.keys())
    enqueue = library_with_test_clock().function("enqueue")
    with pytest.raises(redis.ResponseError, match=r"^BADCALL ") as caught:
        server.fcall(enqueue, 1, ROOT, "c2", 1, *words)
    assert isinstance(translate(caught.value), StorageFault)
    assert await dump() == before
    assert set(server.keys()) == keys
    assert (await storage.stats(QUEUE)).enqueued == 1


def test_kind_and_task_are_said_once_where_jobs_share_them() -> None:
    jobs = [plain("a", b"1", priority=7), plain("b", b"2", priority=7)]
    assert said(*jobs) == ["\t017", "send", "a", b"1", "b", b"2"]
    drawn = [plain("a", is_new_id=True), plain("b", is_new_id=True, replaces_ended=False)]
    assert said(drawn[0], drawn[0])[0] == "\t115"
    assert said(drawn[1], drawn[1])[0] == "\t115"
    assert said(plain("a", replaces_ended=False), plain("b", replaces_ended=False))[0] == "\t215"


@pytest.mark.parametrize(
    "other",
    [
        plain("b", priority=6),
        plain("b", is_new_id=True),
        plain("b", replaces_ended=False),
        JobRequest("b", QUEUE, "other", b"[]", is_plain=True),
        a_job("b", delay_ms=5),
    ],
    ids=["tier", "drawn", "staying", "task", "asking"],
)
def test_jobs_that_differ_say_theirs_each(other: JobRequest) -> None:
    for batch in ([plain("a"), other], [other, plain("a")], [plain("a"), plain("c"), other]):
        assert said(*batch)[:2] == [batch[0].id, said(batch[0])[1]]


def test_one_job_or_none_is_said_by_itself() -> None:
    assert said() == []
    assert said(plain("a")) == ["a", "015", "send", b"[]"]
    assert said(a_job("a", keep_ms=5)) == ["a", "005", "send", b"[]", 1, "keep_ms", 5]

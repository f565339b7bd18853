"""What holds for every blocking storage, whichever way its verbs block."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from headrace.errors import InvalidOption, ReplyLost, StorageUnavailable
from headrace.job import CancelOutcome, EnqueueOutcome, Verdict
from headrace.storage import BlockingStorage, CallId, Storage, at_once, open_blocking, open_storage
from headrace.storage.base import keeps_schedules
from headrace.storage.portal import PortalStorage
from headrace.storage.sqlite.engine.location import FILE_NAME
from headrace.testing.contract.steps import QUEUE, a_job
from tests.storage.foreign import CountingStorage, OldStorage
from tests.storage.interrupts import interrupt_when_it_waits

KINDS = ["redis", "memory", "file", "another"]
CALLS = 25


@pytest.fixture
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockingStorage]:
    """Open an empty storage of the kind that the test is run with."""
    tenant = f"test-{secrets.token_hex(6)}"
    if request.param == "another":
        file = f"file://{tmp_path}/data"
        another = PortalStorage(partial(_wrapped, CountingStorage, file), tenant)
        storage = cast(BlockingStorage, another)
    elif request.param == "redis":
        storage = open_blocking(request.getfixturevalue("redis_url"), tenant=tenant)
    else:
        urls = {"memory": f"memory://{tenant}", "file": f"file://{tmp_path}/data"}
        storage = open_blocking(urls[request.param], tenant=tenant)
    with closing(storage):
        yield storage


def enqueue(storage: BlockingStorage, client: str, number: int) -> list[Verdict]:
    """Enqueue a job; where it is not known whether that was done, by the same number again."""
    job = a_job(f"{client}-{number}")
    while True:
        try:
            return at_once(storage.enqueue(QUEUE, [job], call=CallId(client, number)))
        except (StorageUnavailable, ReplyLost):
            continue


def queued(storage: BlockingStorage) -> int:
    return at_once(storage.stats(QUEUE)).queued


@pytest.mark.parametrize("storage", KINDS, indirect=True)
def test_threads_share_what_one_of_them_closes_again_and_again(storage: BlockingStorage) -> None:
    found: list[list[Verdict]] = []

    def work() -> None:
        client = secrets.token_hex(8)
        found.extend(enqueue(storage, client, number) for number in range(1, CALLS + 1))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        storage.close()
        threads[0].join(0.01)
        threads[-1].join(0.01)
    assert found == [[EnqueueOutcome.QUEUED]] * (8 * CALLS)
    assert queued(storage) == 8 * CALLS


@pytest.mark.parametrize("storage", KINDS, indirect=True)
def test_one_tenant_is_closed_and_another_works_on(storage: BlockingStorage) -> None:
    other = storage.for_tenant("other")
    with closing(other), closing(other.open_inbox()) as inbox:
        enqueue(other, "c", 1)
        enqueue(storage, "c", 1)
        storage.close()
        assert inbox.receive(10) is None
        job = a_job("waited-for", channel=inbox.name)
        at_once(other.enqueue(QUEUE, [job], call=CallId("c", 2)))
        at_once(other.cancel(QUEUE, [job.id]))
        end = inbox.receive(10)
        assert end is not None
        assert end.id == job.id


@pytest.mark.parametrize("storage", ["file", "another"], indirect=True)
def test_an_interrupted_call_does_not_answer_the_next(
    storage: BlockingStorage, tmp_path: Path
) -> None:
    enqueue(storage, "c", 1)
    with closing(sqlite3.connect(tmp_path / "data" / FILE_NAME)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        thread = interrupt_when_it_waits()
        with pytest.raises(KeyboardInterrupt):
            at_once(storage.enqueue(QUEUE, [a_job("c-2")], call=CallId("c", 2)))
        thread.join()
        holder.rollback()
    assert at_once(storage.cancel(QUEUE, ["unknown"])) == [CancelOutcome.NOT_FOUND]
    # It was done or not: by its number it is done once.
    assert enqueue(storage, "c", 2) == [EnqueueOutcome.QUEUED]
    assert queued(storage) == 2


def test_one_that_lacks_a_role_lacks_it_here_too(tmp_path: Path) -> None:
    file = f"file://{tmp_path}/data"
    for kind, keeps in ((OldStorage, False), (CountingStorage, True)):
        another = PortalStorage(partial(_wrapped, kind, file), "acme")
        assert keeps_schedules(another) is keeps


def _wrapped(kind: type[CountingStorage], url: str) -> Storage:
    return cast(Storage, kind(open_storage(url)))


@pytest.mark.parametrize(
    ("url", "tenant"),
    [("nowhere://x", "acme"), ("redis://localhost:99999", "acme"), ("memory://", "no name!")],
    ids=["scheme", "port", "tenant"],
)
def test_what_can_not_be_opened_is_said_before_anything_is(url: str, tenant: str) -> None:
    with pytest.raises(InvalidOption):
        open_blocking(url, tenant=tenant)

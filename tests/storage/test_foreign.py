"""The contract holds for anybody's storage, finds a wrong one, and runs in anybody's project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from headrace import StorageRefused
from headrace.queues import Queue
from headrace.storage import Storage, at_once
from headrace.storage.base import (
    check_keeps_schedules,
    check_reads_in_bulk,
    check_tells_why,
    check_writes_in_bulk,
    keeps_schedules,
    writes_in_bulk,
)
from headrace.storage.portal import PortalStorage
from headrace.testing.contract import StorageContract, Subject
from tests.storage.foreign import (
    BULK_READER_VERBS,
    BULK_VERBS,
    SCHEDULER_VERBS,
    CountingStorage,
    ForeignSubject,
    OldStorage,
    PortalSubject,
)
from tests.support.processes import ROOT
from tests.support.until import patience

TESTS = '''
"""The tests of a user's storage."""

import pytest

from headrace import StorageRefused
from headrace.storage.base import check_keeps_schedules, keeps_schedules
from headrace.testing.contract import StorageContract, Subject
from tests.storage.foreign import CountingStorage, ForeignSubject, {kind}


class TestStorage(StorageContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return ForeignSubject({kind})
'''
SETTLING = "test_another_claim_is_stale_and_changes_nothing"
OUTCOMES = ["Completed", "Retried", "Failed", "Cancelled", "PutBack", "Stalled", "Snoozed"]


class TestForeign(StorageContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return ForeignSubject(CountingStorage)


@pytest.mark.slow
class TestPortal(StorageContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return PortalSubject()


def run(
    directory: Path, kind: str, *words: str, mode: str = "auto", scope: str = "function"
) -> tuple[set[str], str]:
    """Run the contract in a project of its own; return the failed tests and all that was said."""
    (directory / "test_storage.py").write_text(TESTS.format(kind=kind))
    (directory / "pytest.ini").write_text(
        "[pytest]\n"
        f"asyncio_mode = {mode}\n"
        f"asyncio_default_fixture_loop_scope = {scope}\n"
        f"asyncio_default_test_loop_scope = {scope}\n"
        "filterwarnings = error\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", *words],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(100),
    )
    said = ran.stdout + ran.stderr
    failed = {
        line.partition("::TestStorage::")[2].partition(" - ")[0]
        for line in said.splitlines()
        if line.startswith("FAILED ")
    }
    assert ran.returncode == (1 if failed else 0), said
    return failed, said


def test_a_storage_that_ignores_the_nonce_is_found(tmp_path: Path) -> None:
    failed, said = run(tmp_path, "NonceBlindStorage", "-k", SETTLING)
    assert failed >= {f"{SETTLING}[nonce-{outcome}]" for outcome in OUTCOMES}, said
    assert not failed & {f"{SETTLING}[epoch-{outcome}]" for outcome in OUTCOMES}
    # pytest rewrites the assertions of the suite as it does a project's own.
    assert "assert not True" in said


def test_a_storage_that_remembers_no_call_is_found(tmp_path: Path) -> None:
    failed, said = run(tmp_path, "ForgetfulStorage", "-k", "repeated_call or two_behind")
    assert failed >= {
        "test_a_repeated_call_answers_the_same_and_changes_nothing",
        "test_a_repeated_call_says_queued_even_when_the_job_has_ended_meanwhile",
        "test_a_call_two_behind_is_stale_whether_it_was_done_or_not[True]",
    }, said


@pytest.mark.parametrize("scope", ["function", "session"])
@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_the_contract_runs_in_either_mode_and_whatever_loop_is_the_default(
    tmp_path: Path, mode: str, scope: str
) -> None:
    words = "-k", "put_back or waiter or channel"
    failed, said = run(tmp_path, "CountingStorage", *words, mode=mode, scope=scope)
    assert not failed, said
    assert " passed" in said
    assert "skipped" not in said


def test_a_class_without_a_subject_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "test_empty.py").write_text(
        "from headrace.testing.contract import StorageContract\n"
        "class TestStorage(StorageContract):\n"
        "    pass\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-k", "paused", str(tmp_path)]
    ran = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=patience(60)
    )
    assert ran.returncode == 1
    assert "TestStorage needs a fixture `subject` that returns a Subject" in ran.stdout


async def test_every_call_went_through_the_foreign_storage() -> None:
    subject = ForeignSubject(CountingStorage)
    await subject.storage.queues()
    await subject.aclose()
    assert subject.counting.calls == {"queues": 1, "aclose": 1}


async def test_a_storage_that_keeps_no_schedules_says_so_and_what_it_lacks() -> None:
    subject = ForeignSubject(OldStorage)
    assert not keeps_schedules(subject.storage)
    with pytest.raises(StorageRefused) as raised:
        check_keeps_schedules(subject.storage)
    assert "OldStorage keeps no schedules" in str(raised.value)
    assert ", ".join(SCHEDULER_VERBS) in str(raised.value)
    await subject.aclose()


async def test_a_storage_that_keeps_schedules_is_taken() -> None:
    subject = ForeignSubject(CountingStorage)
    assert keeps_schedules(subject.storage)
    check_keeps_schedules(subject.storage)
    await subject.aclose()


async def test_a_storage_without_strikes_pauses_queues_and_says_that_it_pauses_no_task() -> None:
    subject = ForeignSubject(OldStorage)
    queue = Queue("mail", lambda: subject.storage)
    await queue.pause()
    with pytest.raises(StorageRefused, match="has no strikes, since it lacks lift, strike, strik"):
        await queue.pause("send")
    assert (await queue.stats()).paused_tasks == []
    await subject.aclose()


async def test_jobs_need_no_schedules(tmp_path: Path) -> None:
    failed, said = run(tmp_path, "OldStorage", "-k", "put_back or waiter or enqueue")
    assert not failed, said


async def test_a_storage_without_bulk_writes_says_so_and_what_it_lacks() -> None:
    subject = ForeignSubject(OldStorage)
    assert not writes_in_bulk(subject.storage)
    with pytest.raises(StorageRefused) as raised:
        check_writes_in_bulk(subject.storage)
    assert "OldStorage has no bulk writes" in str(raised.value)
    assert ", ".join(BULK_VERBS) in str(raised.value)
    await subject.aclose()


async def test_a_storage_without_bulk_reads_says_so_and_what_it_lacks() -> None:
    subject = ForeignSubject(OldStorage)
    with pytest.raises(StorageRefused) as raised:
        check_reads_in_bulk(subject.storage)
    assert "OldStorage has no bulk reads of events" in str(raised.value)
    assert ", ".join(BULK_READER_VERBS) in str(raised.value)
    await subject.aclose()


async def test_a_storage_that_can_not_tell_why_says_so() -> None:
    subject = ForeignSubject(OldStorage)
    with pytest.raises(StorageRefused, match="OldStorage can't tell why a job does not run") as got:
        check_tells_why(subject.storage)
    assert "lacks why:" in str(got.value)
    await subject.aclose()


@pytest.mark.parametrize("kind", [CountingStorage, OldStorage])
async def test_a_storage_in_a_thread_lacks_what_it_lacks_elsewhere(
    kind: type[CountingStorage],
) -> None:
    subject = ForeignSubject(kind)
    portal = PortalStorage(lambda: cast(Storage, subject.counting), "acme")
    if kind is OldStorage:
        with pytest.raises(StorageRefused, match=", ".join(BULK_READER_VERBS)):
            check_reads_in_bulk(portal)
    else:
        check_reads_in_bulk(portal)
        assert at_once(portal.event_lines("mail")) == []
    portal.close()
    await subject.aclose()

"""Progress and output on their way to the storage: batched, in order, lost rather than waited for.

What stands in for the storage keeps what it is given; that the storages store it has tests of its
own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest

from headrace.errors import StorageUnavailable
from headrace.job import CHUNK_LIMIT_BYTES, Claim, ClaimedJob
from headrace.storage.limits import BATCH_LIMIT, BATCH_LIMIT_BYTES
from headrace.storage.values import Report
from headrace.worker import reports as module
from headrace.worker.reports import OUTPUT_LIMIT, Reports
from tests.support.until import until


class Edge:
    """Takes reports, and can be slow or away."""

    def __init__(self) -> None:
        self.calls: list[list[Report]] = []
        self.at: list[float] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.error: Exception | None = None

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        assert queue == "cpu"
        self.calls.append(list(reports))
        self.at.append(time.monotonic())
        await self.is_open.wait()
        if self.error is not None:
            raise self.error
        return [True] * len(reports)

    def of(self, job: ClaimedJob) -> list[Report]:
        return [
            r for call in self.calls for r in call if (r.job_id, r.claim) == (job.id, job.claim)
        ]

    def chunks(self, job: ClaimedJob) -> list[bytes]:
        """Return a job's output as a storage would keep it, checking the numbers."""
        found: list[bytes] = []
        for report in self.of(job):
            if report.chunks:
                assert report.first == len(found)
                found.extend(report.chunks)
        return found


def job_of(number: int = 0, *, epoch: int = 1) -> ClaimedJob:
    return ClaimedJob(
        id=str(number),
        queue="cpu",
        task="t",
        payload=b"{}",
        claim=Claim(epoch, "incarnation/nonce"),
        failures=0,
        stalls=0,
        created_ms=0,
        waited_ms=0,
        options=b"",
    )


@pytest.fixture
async def edge() -> Edge:
    return Edge()


@pytest.fixture
async def reports(edge: Edge) -> Reports:
    storage: Any = edge
    return Reports(storage, queue="cpu")


@pytest.fixture
async def running(reports: Reports) -> AsyncIterator[None]:
    loop = asyncio.create_task(reports.run())
    yield
    loop.cancel()
    await asyncio.wait([loop])


class Ended:
    """Counts what is called once an attempt's words are stored."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


# What goes in one call


async def test_of_much_progress_the_last_is_reported(edge: Edge, reports: Reports) -> None:
    for step in range(100):
        reports.progress(job_of(), step / 100, f"step {step}")
    await reports.report_once()
    assert edge.calls == [[Report("0", job_of().claim, 0.99, "step 99", [], 0)]]
    await reports.report_once()
    assert len(edge.calls) == 1, "there was nothing new"


async def test_output_of_many_attempts_goes_in_one_call_in_order(
    edge: Edge, reports: Reports
) -> None:
    for number in range(20):
        for step in range(5):
            reports.emit(job_of(number), b"%d" % step)
    await reports.report_once()
    assert len(edge.calls) == 1
    for number in range(20):
        assert edge.chunks(job_of(number)) == [b"0", b"1", b"2", b"3", b"4"]


async def test_pieces_are_numbered_on_from_one_call_to_the_next(
    edge: Edge, reports: Reports
) -> None:
    for step in range(5):
        reports.emit(job_of(), b"%d" % step)
        await reports.report_once()
    assert edge.chunks(job_of()) == [b"0", b"1", b"2", b"3", b"4"]
    assert [report.first for report in edge.of(job_of())] == [0, 1, 2, 3, 4]


async def test_the_oldest_pieces_make_room_and_their_numbers_are_missing(
    edge: Edge, reports: Reports
) -> None:
    for step in range(OUTPUT_LIMIT + 5):
        reports.emit(job_of(), b"%d" % step)
    await reports.report_once()
    (report,) = edge.of(job_of())
    assert report.first == 5
    assert report.chunks[0] == b"5"
    assert len(report.chunks) == OUTPUT_LIMIT


async def test_a_call_holds_so_many_reports_and_so_many_bytes(edge: Edge, reports: Reports) -> None:
    for number in range(2 * BATCH_LIMIT + 1):
        reports.progress(job_of(number), 0.5, "")
    piece = b"x" * (CHUNK_LIMIT_BYTES - 1)
    for _ in range(100):
        reports.emit(job_of(0), piece)
        reports.emit(job_of(1), piece)
    await reports.report_once()
    for call in edge.calls:
        assert len(call) <= BATCH_LIMIT
        assert sum(len(chunk) for report in call for chunk in report.chunks) <= BATCH_LIMIT_BYTES
    assert len({r.job_id for call in edge.calls for r in call}) == 2 * BATCH_LIMIT + 1
    assert edge.chunks(job_of(0)) == edge.chunks(job_of(1)) == [piece] * 100


async def test_two_attempts_of_one_job_are_kept_apart(edge: Edge, reports: Reports) -> None:
    reports.emit(job_of(epoch=1), b"old")
    reports.emit(job_of(epoch=2), b"new")
    await reports.report_once()
    assert edge.chunks(job_of(epoch=1)) == [b"old"]
    assert edge.chunks(job_of(epoch=2)) == [b"new"]


# When it goes


@pytest.mark.usefixtures("running")
async def test_progress_alone_is_thinned_out(
    edge: Edge, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRESS_S", 0.2)
    step = 0

    def go_on() -> bool:
        nonlocal step
        step += 1
        reports.progress(job_of(), min(1.0, step / 1e6), "")
        return len(edge.calls) >= 4

    began_at = time.monotonic()
    await until(go_on, within=15)
    assert edge.at[3] - began_at >= 4 * 0.2 * 0.9
    assert step > 8, "most were left out"


async def test_progress_is_thinned_out_beside_a_flow_of_output_too(
    edge: Edge, reports: Reports
) -> None:
    job = job_of()
    for step in range(20):
        reports.progress(job, step / 20, f"step {step}")
        reports.emit(job, b"%d" % step)
        await reports.report_once()
    assert [report.text for report in edge.of(job) if report.fraction is not None] == ["step 0"]
    assert edge.chunks(job) == [b"%d" % step for step in range(20)]
    # The last word goes along with the end.
    ended = Ended()
    reports.finish(job, ended)
    await reports.report_once()
    assert edge.of(job)[-1].text == "step 19"
    assert ended.count == 1


@pytest.mark.usefixtures("running")
async def test_output_does_not_wait_for_the_pace_of_progress(
    edge: Edge, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRESS_S", 600)
    reports.progress(job_of(), 0.5, "half")
    await asyncio.sleep(0)
    assert edge.calls == []
    reports.emit(job_of(), b"1")
    await until(lambda: edge.calls)
    assert edge.calls == [[Report("0", job_of().claim, 0.5, "half", [b"1"], 0)]]


@pytest.mark.usefixtures("running")
async def test_an_attempt_that_has_said_nothing_ends_at_once(reports: Reports) -> None:
    ended = Ended()
    reports.finish(job_of(), ended)
    assert ended.count == 1
    assert reports.holds() == set()


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("has_output", [False, True])
async def test_what_is_left_at_the_end_of_an_attempt_goes_at_once_and_before_its_outcome(
    edge: Edge, reports: Reports, monkeypatch: pytest.MonkeyPatch, *, has_output: bool
) -> None:
    monkeypatch.setattr(module, "PROGRESS_S", 600)
    monkeypatch.setattr(module, "OUTPUT_S", 600)
    edge.is_open.clear()
    reports.progress(job_of(), 1.0, "done")
    if has_output:
        reports.emit(job_of(), b"last")
    ended = Ended()
    reports.finish(job_of(), ended)
    assert reports.holds() == {"0"}, "a sweep must not take it for lost"
    await until(lambda: edge.calls, what="it was reported")
    assert ended.count == 0
    edge.is_open.set()
    await until(lambda: ended.count)
    assert edge.chunks(job_of()) == [b"last"] * has_output
    assert reports.holds() == set()


@pytest.mark.usefixtures("running")
async def test_an_attempt_that_ends_while_its_words_are_underway_waits_for_them(
    edge: Edge, reports: Reports
) -> None:
    # Else its outcome might overtake them, and they would be refused.
    edge.is_open.clear()
    reports.emit(job_of(), b"1")
    await until(lambda: edge.calls)
    ended = Ended()
    reports.finish(job_of(), ended)
    for _ in range(20):
        await asyncio.sleep(0)
    assert ended.count == 0
    edge.is_open.set()
    await until(lambda: ended.count)
    assert ended.count == 1


@pytest.mark.usefixtures("running")
async def test_an_attempt_that_never_stops_talking_holds_up_no_other_s_end(
    edge: Edge, reports: Reports
) -> None:
    is_over = threading.Event()

    def talk() -> None:
        while not is_over.is_set():
            reports.emit(job_of(1), b"on and on")

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        await until(lambda: edge.of(job_of(1)))
        reports.emit(job_of(2), b"bye")
        ended = Ended()
        reports.finish(job_of(2), ended)
        await until(lambda: ended.count, within=15)
    finally:
        is_over.set()
        talker.join()
    assert edge.chunks(job_of(2)) == [b"bye"]


async def test_words_of_two_callers_go_one_after_the_other(edge: Edge, reports: Reports) -> None:
    # At its end a incarnation reports itself, while its loop may still do so.
    edge.is_open.clear()
    async with anyio.create_task_group() as group:
        reports.emit(job_of(), b"1")
        group.start_soon(reports.report_once)
        await until(lambda: edge.calls)
        reports.emit(job_of(), b"2")
        group.start_soon(reports.report_once)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(edge.calls) == 1
        edge.is_open.set()
    assert edge.chunks(job_of()) == [b"1", b"2"]


# In several threads


@pytest.mark.usefixtures("running")
async def test_many_threads_speak_and_nothing_is_lost_or_out_of_order(
    edge: Edge, reports: Reports
) -> None:
    # Fewer pieces than wait at most, as else the oldest would make room.
    def speak(number: int) -> None:
        for step in range(400):
            reports.emit(job_of(number), b"%d" % step)
            reports.progress(job_of(number), step / 400, "")

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(anyio.to_thread.run_sync, speak, number)
    ended = Ended()
    for number in range(20):
        reports.finish(job_of(number), ended)
    await until(lambda: ended.count == 20)
    for number in range(20):
        assert edge.chunks(job_of(number)) == [b"%d" % step for step in range(400)]


@pytest.mark.usefixtures("running")
async def test_a_word_from_a_thread_wakes_the_loop(edge: Edge, reports: Reports) -> None:
    for step in range(20):
        await anyio.to_thread.run_sync(reports.emit, job_of(), b"%d" % step)
        await until(lambda: len(edge.chunks(job_of())) == step + 1)  # noqa: B023 (awaited here)


# When the storage is away


@pytest.mark.usefixtures("running")
async def test_words_are_lost_while_the_storage_is_away_and_ends_are_not_held_up(
    edge: Edge, reports: Reports
) -> None:
    edge.error = StorageUnavailable("away")
    ended = Ended()
    for number in range(3):
        reports.emit(job_of(number), b"lost")
        reports.finish(job_of(number), ended)
    await until(lambda: ended.count == 3)
    assert reports.holds() == set()
    edge.error = None
    reports.emit(job_of(9), b"kept")
    await until(lambda: edge.of(job_of(9)))


@pytest.mark.usefixtures("running")
async def test_a_running_attempt_goes_on_with_its_next_words_after_an_outage(
    edge: Edge, reports: Reports
) -> None:
    edge.error = StorageUnavailable("away")
    reports.emit(job_of(), b"lost")
    await until(lambda: edge.calls)
    edge.error = None
    reports.emit(job_of(), b"kept")
    await until(lambda: len(edge.calls) == 2)
    assert edge.calls[1][0].first == 1, "a reader can see that one is missing"


async def test_a_report_that_is_cut_short_holds_up_no_end(edge: Edge, reports: Reports) -> None:
    edge.is_open.clear()
    loop = asyncio.create_task(reports.run())
    reports.emit(job_of(), b"1")
    await until(lambda: edge.calls)
    ended = Ended()
    reports.finish(job_of(), ended)
    loop.cancel()
    await asyncio.wait([loop])
    assert ended.count == 1


async def test_an_error_that_is_none_of_the_storage_s_holds_up_no_end_either(
    edge: Edge, reports: Reports
) -> None:
    edge.error = LookupError("a bug")
    reports.emit(job_of(), b"1")
    ended = Ended()
    reports.finish(job_of(), ended)
    with pytest.raises(LookupError):
        await reports.report_once()
    assert ended.count == 1

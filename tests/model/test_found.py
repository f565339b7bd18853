"""Differences between the storages that the machine has found, each as a few plain steps.

The driver compares replies, and all that is stored, with the model after every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from headrace.job import ClaimedJob, JobState
from headrace.storage.incarnations import ClaimReply
from headrace.storage.values import CallId, Report, Settlement, StageInfo
from tests.model import asks
from tests.model.driver import Driver, Full
from tests.model.subjects import QUEUE

numbers = count(1)


def enqueue(driver: Driver, job_id: str, *kinds: str) -> None:
    job = asks.make_job(job_id, kinds, now=driver.subject.now, channel=driver.channel)
    driver.call("enqueue", [job], call=CallId("c1", next(numbers)))


def claim(
    driver: Driver, worker: str = "w1", limit: int = 10, lanes: Sequence[str] = ("default",)
) -> Sequence[ClaimedJob]:
    number = next(numbers)
    reply: ClaimReply = driver.call(
        "claim",
        call=CallId(worker, number),
        nonce=f"{worker}/{number}",
        slots=dict.fromkeys(lanes, limit),
    )
    return reply.jobs


def settle(driver: Driver, job: ClaimedJob, outcome: str, worker: str = "w1") -> None:
    settlement = Settlement(job.id, job.claim, 120, asks.OUTCOMES[outcome])
    driver.call("settle", [settlement], call=CallId(worker, next(numbers)))


def register(driver: Driver, *names: str) -> None:
    for name in names:
        driver.call("register", asks.worker_of(name))


def test_no_time_is_negative_after_the_clock_was_set_back(driver: Driver) -> None:
    register(driver, "w1")
    enqueue(driver, "a")
    enqueue(driver, "b")
    driver.advance(-1)
    driver.call("workers")
    driver.stats()
    [job, _] = claim(driver)
    assert job.waited_ms == 0


def test_an_attempt_that_was_put_back_ran_for_no_time(driver: Driver) -> None:
    register(driver, "w1")
    enqueue(driver, "a")
    settle(driver, claim(driver)[0], "retried at once")
    settle(driver, claim(driver)[0], "put back")
    assert driver.call("get", "a").run_ms == 0


def test_the_head_of_a_queue_is_not_taken_for_a_later_job_with_the_id_of_a_cancelled_one(
    driver: Driver,
) -> None:
    enqueue(driver, "a")
    driver.call("cancel", ["a"])
    enqueue(driver, "b")
    driver.advance(1000)
    enqueue(driver, "a")
    driver.stats()


def test_a_dead_letter_that_reached_an_earlier_age_is_pruned(driver: Driver) -> None:
    register(driver, "w1")
    driver.call("configure", **asks.SETTINGS["for a minute"])
    enqueue(driver, "a")
    settle(driver, claim(driver)[0], "failed")
    driver.call("configure", **asks.SETTINGS["default"])
    driver.advance(asks.MINUTE_MS)
    driver.prune()
    driver.stats()


def bring_to_last_chance(driver: Driver, *job_ids: str) -> None:
    register(driver, "w3")
    for job_id in job_ids:
        enqueue(driver, job_id, "two lives")
    claim(driver, "w3")
    driver.call("reap", "w3", seen=0, error=asks.DEATH)


def test_a_new_job_with_the_id_of_one_on_its_last_chance_lets_another_such_run(
    driver: Driver,
) -> None:
    register(driver, "w1")
    bring_to_last_chance(driver, "a")
    settle(driver, claim(driver)[0], "completed, not kept")
    enqueue(driver, "a")
    assert [job.id for job in claim(driver)] == ["a"]
    bring_to_last_chance(driver, "b")
    assert [job.id for job in claim(driver)] == ["b"]


def test_a_new_job_after_one_on_its_last_chance_lets_another_such_run(driver: Driver) -> None:
    # In a database it may have the same row.
    register(driver, "w1")
    bring_to_last_chance(driver, "a")
    settle(driver, claim(driver)[0], "completed, not kept")
    enqueue(driver, "c")
    assert [job.id for job in claim(driver)] == ["c"]
    bring_to_last_chance(driver, "b")
    assert [job.id for job in claim(driver)] == ["b"]


def test_a_job_that_was_on_its_last_chance_lets_another_such_run_once_it_was_redriven(
    driver: Driver,
) -> None:
    register(driver, "w1")
    bring_to_last_chance(driver, "a")
    settle(driver, claim(driver)[0], "failed")
    driver.call("redrive", ["a"])
    assert [job.id for job in claim(driver)] == ["a"]
    bring_to_last_chance(driver, "b")
    assert [job.id for job in claim(driver)] == ["b"]
    assert driver.call("get", "a").state is JobState.ACTIVE


def report(driver: Driver, job: ClaimedJob, *chunks: bytes, first: int = 0) -> None:
    driver.call("report", [Report(job.id, job.claim, None, "", [*chunks], first)])


def test_a_redriven_job_keeps_its_output_for_longer_than_its_dead_letter_would_have_been_kept(
    driver: Driver,
) -> None:
    register(driver, "w1")
    driver.call("configure", **asks.SETTINGS["for a minute"])
    enqueue(driver, "a")
    [job] = claim(driver)
    report(driver, job, b"1")
    settle(driver, job, "failed")
    driver.call("redrive", ["a"])
    driver.advance(asks.MINUTE_MS)
    driver.output("a", 10)


@pytest.mark.parametrize("back_ms", [1, asks.HOUR_MS])
def test_output_that_has_reached_its_age_may_be_gone_although_the_clock_is_set_back(
    driver: Driver, back_ms: int
) -> None:
    register(driver, "w1")
    enqueue(driver, "a")
    [job] = claim(driver)
    report(driver, job, b"1")
    driver.advance(asks.HOUR_MS)
    driver.prune()
    driver.advance(-back_ms)
    report(driver, job, b"1", b"2")
    driver.output("a", 10)


def test_output_ends_with_its_record_although_the_clock_was_set_back(driver: Driver) -> None:
    register(driver, "w1")
    enqueue(driver, "a")
    [job] = claim(driver)
    report(driver, job, b"1")
    driver.advance(-asks.HOUR_MS)
    settle(driver, job, "completed")
    driver.advance(asks.HOUR_MS)
    driver.output("a", 10)


def test_output_ends_with_its_record_although_the_clock_was_set_back_by_little(
    driver: Driver,
) -> None:
    register(driver, "w1")
    enqueue(driver, "a")
    [job] = claim(driver)
    report(driver, job, b"1")
    driver.advance(-1)
    for _ in range(10):  # the server's own clock goes on meanwhile
        driver.check()
    settle(driver, job, "completed")
    driver.advance(asks.HOUR_MS)
    driver.output("a", 10)


def test_pieces_may_come_before_those_that_were_gone_at_their_age(driver: Driver) -> None:
    register(driver, "w1")
    enqueue(driver, "a")
    [job] = claim(driver)
    report(driver, job, b"2", first=2)
    driver.advance(asks.HOUR_MS)
    report(driver, job, b"1", b"2", first=1)
    driver.output("a", 10)


def test_an_update_leaves_how_long_a_job_last_ran(driver: Driver) -> None:
    register(driver, "w1")
    enqueue(driver, "a")
    settle(driver, claim(driver)[0], "retried in a minute")
    enqueue(driver, "a", "in an hour", "updates")
    assert driver.call("get", "a").run_ms == 120


def test_what_is_owed_to_a_rate_stays_owed_while_its_limit_allows_everything(
    driver: Driver,
) -> None:
    register(driver, "w1")
    driver.call("set_limit", "later", asks.TERMS["one a minute"])
    enqueue(driver, "a", "limited by name")
    claim(driver)
    driver.call("set_limit", "later", None)
    driver.call("cancel", ["a"])
    driver.advance(0)
    driver.call("set_limit", "later", asks.TERMS["one a minute"])
    enqueue(driver, "b", "limited by name")
    driver.call("gate", "later", "k")
    driver.advance(asks.MINUTE_MS)
    driver.check()


def test_jobs_that_are_published_into_a_full_queue_stay_until_there_is_room(
    driver: Driver,
) -> None:
    jobs = [asks.make_job(name, [], now=driver.subject.now, channel="") for name in "abcd"]
    driver.stage("w2", "t1", jobs, before=0, ttl_ms=asks.HOUR_MS)
    driver.commit("w2", [StageInfo("t1", 1, 4)], batch=0, keep_ms=asks.HOUR_MS)
    driver.call("configure", **asks.SETTINGS["four wait"])
    for name in ("v", "w", "x", "y"):
        enqueue(driver, name)
    assert driver.call("publish") == Full(QUEUE, 4, 4)
    driver.call("cancel", ["v"])
    assert driver.call("publish") == 0


def test_several_of_a_key_that_came_back_are_all_struck_in_one_claim(driver: Driver) -> None:
    register(driver, "w1")
    for name in "abc":
        enqueue(driver, name, "fair")
    claim(driver)
    driver.call("reap", "w1", seen=0, error=asks.DEATH)
    driver.call("strike", asks.STRIKES["strike:2"])
    register(driver, "w1")
    assert not claim(driver, limit=2)
    assert all(job.state is JobState.CANCELLED for job in driver.model.queue(QUEUE).jobs.values())


def test_jobs_of_two_lanes_that_came_back_are_struck_in_the_order_of_their_numbers(
    driver: Driver,
) -> None:
    driver.call("strike", asks.STRIKES["strike:1"])
    register(driver, "w1")
    for name in "abcdef":
        enqueue(driver, name, *(["in a process"] if name in "bdf" else []))
    claim(driver, lanes=("default", "process"))
    driver.call("reap", "w1", seen=0, error=asks.DEATH)
    driver.call("strike", asks.STRIKES["strike:4"])
    register(driver, "w1")
    claim(driver, lanes=("default", "process"))

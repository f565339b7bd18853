"""The model as others use it: copied, and read as plain data."""

from __future__ import annotations

import copy

from headrace.job import EnqueueOutcome, JobState
from headrace.storage.schedules import Occurrence
from headrace.storage.values import CallId, Settlement
from tests.model import asks
from tests.model.model import Model
from tests.model.subjects import QUEUE, START_MS


def test_a_copy_of_the_model_goes_its_own_way() -> None:
    model = Model(START_MS)
    job = asks.make_job("a", [], now=START_MS, channel="")
    call = CallId("c1", 1)
    assert model.enqueue(QUEUE, [job], call=call) == [EnqueueOutcome.QUEUED]
    model.register(QUEUE, asks.worker_of("w1"))
    other = copy.deepcopy(model)
    assert other.dump(QUEUE) == model.dump(QUEUE)
    reply = other.claim(QUEUE, call=CallId("w1", 1), nonce="w1/1", slots={"default": 1})
    [claimed] = reply.jobs
    settlement = Settlement("a", claimed.claim, 5, asks.OUTCOMES["completed"])
    assert other.settle(QUEUE, [settlement], call=CallId("w1", 1)) == [True]
    assert other.dump(QUEUE)["jobs"]["a"]["state"] is JobState.COMPLETED
    assert model.dump(QUEUE)["jobs"]["a"]["state"] is JobState.QUEUED
    assert model.enqueue(QUEUE, [job], call=call) == [EnqueueOutcome.QUEUED]


def test_the_model_of_schedules_fires_an_occurrence_once_whatever_became_of_its_queue() -> None:
    model = Model(START_MS)
    job = asks.make_job("s:1", [], now=START_MS, channel="")
    occurrence = Occurrence("s", 1, job)
    assert model.fire(QUEUE, [occurrence], until_ms=START_MS) == [EnqueueOutcome.QUEUED]
    assert model.purge(QUEUE, JobState.QUEUED, [job.id]) == 1
    assert model.delete_queue(QUEUE, is_forced=True) == 0
    assert model.fire(QUEUE, [occurrence], until_ms=START_MS) == [EnqueueOutcome.DUPLICATE]
    assert model.fire(QUEUE, [occurrence], until_ms=START_MS - 1) is None

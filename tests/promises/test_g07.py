"""G7: a write about an attempt with any other claim changes nothing."""

from __future__ import annotations

import pytest

from headrace import App, JobState
from headrace.app import clients_of
from headrace.job import Claim, ErrorInfo, FailReason
from headrace.outcome import Cancelled, Completed, Failed, Outcome, PutBack, Retried
from headrace.storage.values import CallId, Settlement
from tests.support.silent import claim_and_die

ERROR = ErrorInfo("ValueError", "no")


@pytest.mark.parametrize(
    "outcome",
    [
        Completed(b"1", 1000, 1000),
        Retried(0, ERROR),
        Failed(FailReason.PERMANENT, ERROR),
        Cancelled(1000),
        PutBack(0, ERROR),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
async def test_an_outcome_with_another_epoch_or_nonce_is_refused(
    app: App[None], outcome: Outcome
) -> None:
    handle = await app.enqueue("task", queue="default")
    (job,) = await claim_and_die(app, lease=60)
    before = await handle.status()
    owner = job.claim.nonce.partition("/")[0]
    strangers = [
        Claim(job.claim.epoch + 1, job.claim.nonce),
        Claim(job.claim.epoch - 1, job.claim.nonce),
        Claim(job.claim.epoch, f"{owner}/0000"),
        Claim(job.claim.epoch, "another/nonce"),
    ]
    for number, claim in enumerate(strangers, start=1):
        settlement = Settlement(job.id, claim, 1, outcome)
        call = CallId(owner, number)
        assert await clients_of(app).current().storage.settle(
            "default", [settlement], call=call
        ) == [False]
        await clients_of(app).current().storage.put_back("default", owner, [(job.id, claim)])
    assert await handle.status() == before
    assert before.state is JobState.ACTIVE


async def test_each_start_has_a_claim_of_its_own_with_a_higher_epoch(app: App[None]) -> None:
    await app.enqueue("task", queue="default")
    claims = []
    for _ in range(3):
        (job,) = await claim_and_die(app, lease=60)
        claims.append(job.claim)
        owner = job.claim.nonce.partition("/")[0]
        await clients_of(app).current().storage.put_back("default", owner, [(job.id, job.claim)])
    assert [claim.epoch for claim in claims] == [1, 2, 3]
    assert len({claim.nonce for claim in claims}) == 3

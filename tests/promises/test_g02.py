"""G2: a handler may run again after a crash; at most one outcome is recorded."""

from __future__ import annotations

from headrace import App, Worker
from headrace.app import clients_of
from headrace.codec import encode_result
from headrace.json_codec import JSON
from headrace.outcome import Completed
from headrace.storage.values import CallId, Settlement
from headrace.testing import running
from tests.support.silent import claim_and_die
from tests.support.until import patience


async def test_a_job_that_was_done_but_not_reported_runs_again_with_one_outcome(
    app: App[None],
) -> None:
    @app.task
    async def work() -> str:
        return "by the second"

    handle = await work.enqueue()
    (job,) = await claim_and_die(app)
    async with running(Worker(app, lease=0.6, sweep_interval=0.1)):
        assert await handle.result(timeout=patience(10)) == "by the second"
        outcome = Completed(encode_result(JSON.encoder(str), "by the first"), 60_000, 60_000)
        late = Settlement(job.id, job.claim, 5, outcome)
        incarnation = job.claim.nonce.partition("/")[0]
        call = CallId(incarnation, 1)
        verdict = await clients_of(app).current().storage.settle("default", [late], call=call)
        assert verdict in (None, [False])
        assert await handle.result() == "by the second"
        record = await handle.status()
        assert (record.starts, record.stalls) == (2, 1)
    assert (await app.queue("default").stats()).last_minute.completed == 1

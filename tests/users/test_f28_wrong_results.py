"""F28: a result that is not what its task declares has an error of its own, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import App, JobError, JobFailed, JobState, ResultMismatch, Worker
from headrace.testing import Kit, running
from tests.apps import mismatched_app
from tests.support.until import patience


async def test_f28_the_waiter_gets_an_error_of_its_own(app: App[None]) -> None:
    @app.task(name="count")
    async def count() -> int:
        return "three"  # type: ignore[return-value]  # the point

    job = await count.enqueue()
    async with running(Worker(app)):
        with pytest.raises(ResultMismatch, match="Expected `int`, got `str`") as caught:
            await job.result(timeout=patience(20))
    assert isinstance(caught.value, JobError)
    assert (caught.value.job_id, caught.value.queue) == (job.id, "default")
    assert (await job.status()).state is JobState.COMPLETED


@pytest.mark.parametrize("kind", ["count", "count_in_thread", "count_in_process"])
async def test_f28_with_validate_the_worker_makes_a_dead_letter_of_it(
    storage_url: str, kind: str
) -> None:
    async with mismatched_app.opened(storage_url) as app:
        job = await mismatched_app.declare(app)[kind].enqueue()
        async with running(Worker(app, process_slots=1)):
            with pytest.raises(JobFailed, match="Expected `int`, got `str`") as caught:
                await job.result(timeout=patience(20))
        record = await job.status()
    assert caught.value.reason == "permanent"
    assert caught.value.error_type == "headrace.ResultMismatch"
    assert (record.starts, record.result) == (1, None), "to run it again would not help"


async def test_f28_a_result_that_can_not_be_encoded_is_a_dead_letter_that_says_what_to_do(
    app: App[None],
) -> None:
    @app.task(name="ratio")
    async def ratio() -> dict[str, Any]:
        return {"rows": [1.0, float("nan")]}

    @app.task(name="raw")
    async def raw() -> Any:
        return {"content": b"raw"}

    jobs = [await ratio.enqueue(), await raw.enqueue()]
    words = ["result.rows[1]=nan has no JSON form: pass None", "result.content is bytes, which"]
    async with running(Worker(app)):
        for job, said in zip(jobs, words, strict=True):
            with pytest.raises(JobFailed) as caught:
                await job.result(timeout=patience(20))
            assert caught.value.reason == "permanent"
            assert caught.value.error_type == "headrace.NotSerializable"
            assert said in caught.value.error_message


async def test_f28_a_kit_says_the_same() -> None:
    app = App("memory://", validate=True)

    @app.task(name="count")
    async def count() -> int:
        return "three"  # type: ignore[return-value]  # the point

    async with Kit(app) as kit:
        job = await count.enqueue()
        await kit.run_until_idle(raise_errors=False)
        with pytest.raises(JobFailed, match="Expected `int`, got `str`"):
            await job.result()

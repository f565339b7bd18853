"""Jobs in every state are cancelled while no worker is up, by a process that is killed then."""

from __future__ import annotations

import asyncio
import signal
import sys

import msgspec

from headrace import App, JobState, Retry
from tests.apps.crash_app import PLACES, QUEUE, echo, hold, limited
from tests.crash.crew import Crew
from tests.support.jobs import reached
from tests.support.processes import ROOT
from tests.support.until import patience, until

HOURS = 7_200.0


async def fill(app: App[None]) -> set[str]:
    """Have jobs in every state, and one that follows the active one of its id; return their ids."""
    lasting = Retry(min=HOURS, max=HOURS)
    late = hold.options(id="retrying", timeout=0.05, max_attempts=2, retry=lasting)
    jobs = [hold.options(id=name).job("never") for name in ("active", "followed")]
    held = [limited.options(id=f"holder-{n}").job("k", HOURS) for n in range(PLACES)]
    handles = await app.enqueue_many([late.job("never"), *jobs, *held])
    await reached(handles[0], JobState.RETRYING)
    for handle in handles[1:]:
        await reached(handle, JobState.ACTIVE)
    await app.queue(QUEUE).pause()
    rest = [
        hold.options(id="followed", on_conflict="update").job("now"),
        limited.options(id="blocked").job("k", 0.0),
        echo.options(id="scheduled", delay=0.5).job(1),
        echo.options(id="queued").job(2),
    ]
    outcomes = [handle.outcome.value for handle in await app.enqueue_many(rest)]
    assert outcomes == ["updated", "blocked", "scheduled", "queued"]
    return {handle.id for handle in handles} | {job.id for job in rest}


async def test_what_was_cancelled_never_runs_whoever_dies_and_whoever_comes(
    crew: Crew, app: App[None]
) -> None:
    """G10: the answer is kept by the storage, and by nobody else."""
    worker = await crew.worker("before").ready()
    ids = await fill(app)
    worker.kill()
    # Its own connection of a directory is closed, too: whoever comes opens that anew.
    await app.aclose()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.apps.canceller", crew.url, app.tenant, QUEUE),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    told, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    report = msgspec.json.decode(told)
    assert (report["matched"], report["cancelled"], report["requested"]) == (9, 5, 4)

    await crew.worker("after").ready()
    await app.queue(QUEUE).resume()

    async def are_cancelled() -> bool:
        return all(
            [(await app.job(name, queue=QUEUE).status()).state == "cancelled" for name in ids]
        )

    await until(are_cancelled, within=10)
    # Both places of the limit are free, and what is new runs.
    later = [limited.options(id=f"later-{n}").job("k", 0.0) for n in range(PLACES + 1)]
    for handle in await app.enqueue_many([*later, hold.options(id="last").job("now")]):
        if handle.id == "last":
            crew.open("now")
        await handle.result(timeout=patience(20))
    begun = {(entry.job_id, entry.worker) for entry in crew.ledger.starts()}
    before = {"retrying", "active", "followed", *(f"holder-{n}" for n in range(PLACES))}
    after = {"last", *(f"later-{n}" for n in range(PLACES + 1))}
    assert begun == {(i, "before") for i in before} | {(i, "after") for i in after}

"""Why a job does not run, asked without an event loop, on every storage and with a real worker."""

from __future__ import annotations

import threading

import pytest

from headrace import JobNotFound, ReasonKind, SyncApp
from tests.support.threads import blocked_until, working
from tests.support.until import patience


def test_it_tells_of_jobs_that_wait_run_and_have_ended(app: SyncApp[None]) -> None:
    is_open = threading.Event()

    @app.task(name="hold")
    def hold() -> None:
        assert is_open.wait(patience(10))

    job = hold.enqueue()
    assert [reason.kind for reason in job.why().reasons] == [ReasonKind.NO_WORKER]
    with working(app):
        blocked_until(lambda: job.why().reasons[0].kind == ReasonKind.ACTIVE)
        assert "on worker" in job.why().reasons[0].text
        is_open.set()
        job.result(patience(10))
    [reason] = job.why().reasons
    assert (reason.kind, reason.text) == (ReasonKind.ENDED, "It has completed.")
    with pytest.raises(JobNotFound):
        app.job("nothing", queue="default").why()

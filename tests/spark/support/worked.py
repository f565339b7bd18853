"""Jobs that have ended, without a worker's event loop: claimed and settled by hand."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from headrace.job import ErrorInfo, FailReason
from headrace.outcome import Completed, Failed, Outcome
from headrace.request import JobRequest
from headrace.storage.connect import open_blocking
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.steps import at_once
from headrace.storage.values import CallId, Settlement

QUEUE = "orders"
TENANT = "default"
TASK = "charge"
HOUR_MS = 3_600_000
TRACEBACK = """Traceback (most recent call last):
  File "shop.py", line 7, in charge
    raise ValueError("no cents")
ValueError: no cents
"""
DEAD = Failed(FailReason.EXHAUSTED, ErrorInfo("ValueError", "no cents", TRACEBACK))
DONE = Completed(b'"charged"', HOUR_MS, HOUR_MS)


def work(
    url: str,
    outcomes: Mapping[str, Outcome],
    *,
    queue: str = QUEUE,
    tenant: str = TENANT,
    run_ms: int = 3,
    **asked: Any,
) -> None:
    """Bring in a job for each outcome, by its id, and end it so.

    Args:
        url: where to.
        outcomes: by the ids of the jobs, in their order.
        queue: which queue.
        tenant: whose.
        run_ms: how long each has run.
        **asked: what each asks for beyond a plain one.
    """
    incarnation = f"hand-{secrets.token_hex(6)}"
    with closing(open_blocking(url, tenant=tenant)) as storage:
        jobs = [
            replace(JobRequest(name, queue, TASK, payload_of(name)), **asked) for name in outcomes
        ]
        call = CallId(incarnation, 1)
        at_once(storage.register(queue, _info(incarnation)))
        at_once(storage.enqueue(queue, jobs, call=call))
        nonce = f"{incarnation}/{secrets.token_hex(8)}"
        slots = {"default": BATCH_LIMIT}
        reply = at_once(storage.claim(queue, call=call, nonce=nonce, slots=slots))
        settlements = [
            Settlement(job.id, job.claim, run_ms, outcomes[job.id])
            for job in reply.jobs
            if job.id in outcomes
        ]
        at_once(storage.settle(queue, settlements, call=call))
        at_once(storage.retire(queue, incarnation))


def payload_of(job_id: str) -> bytes:
    """Return the arguments of a job that `work` brings in."""
    return b'{"of":"%s"}' % job_id.encode()


def dead(names: Iterable[str]) -> dict[str, Outcome]:
    """Return that jobs of these ids become dead letters."""
    return dict.fromkeys(names, DEAD)


def done(names: Iterable[str]) -> dict[str, Outcome]:
    """Return that jobs of these ids complete."""
    return dict.fromkeys(names, DONE)


def _info(incarnation: str) -> IncarnationInfo:
    return IncarnationInfo(
        incarnation=incarnation,
        name="hand",
        host="here",
        pid=7,
        version="1.2.3",
        app_version="2026-01",
        concurrency=BATCH_LIMIT,
        lease_ms=60_000,
        registered_ms=0,
    )

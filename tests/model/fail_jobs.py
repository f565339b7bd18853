"""The model of fail jobs: what a dead letter brings."""

from __future__ import annotations

import msgspec

from headrace.job import DEFAULT_KEEP_MS, DEFAULT_LANE, DEFAULT_MAX_STALLS, ErrorInfo, JobState
from tests.model.places import Dump, QueueState, Record


def born_of(
    q: QueueState,
    failed: Record,
    reason: str,
    error: ErrorInfo | None,
    *,
    now: int,
    hint: Dump | None,
) -> Record | None:
    """Return the fail job of a job that has just failed, None if there is to be none.

    Storages draw its id, so that is the hint's.
    """
    task = q.settings.on_failed if failed.on_failed is None else failed.on_failed
    if not task:
        return None
    options = msgspec.json.encode(
        {
            "failed": {
                "id": failed.id,
                "task": failed.task,
                "reason": reason,
                "failures": failed.failures,
                "stalls": failed.stalls,
                "starts": failed.epoch,
                "error": error,
            }
        }
    )
    return Record(
        id=_drawn_id(q, options, hint),
        task=task,
        payload=failed.payload,
        tier=failed.tier,
        lane=q.lanes.get(task, DEFAULT_LANE),
        created=now,
        at=now,
        state=JobState.QUEUED,
        expires=0,
        max_stalls=DEFAULT_MAX_STALLS,
        keep=DEFAULT_KEEP_MS,
        options=options,
        on_failed="",
    )


def _drawn_id(q: QueueState, options: bytes, hint: Dump | None) -> str:
    jobs = (hint or {}).get("jobs", {})
    drawn = (job_id for job_id, job in jobs.items() if job["options"] == options)
    return next((job_id for job_id in drawn if job_id not in q.jobs), "no job has come")

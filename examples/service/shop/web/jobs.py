"""Jobs: how they stand, their progress as it happens, and an end to them."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from headrace import InvalidOption, JobHandle, JobNotFound, JobStatus
from pydantic import BaseModel

from shop.app import app

router = APIRouter(prefix="/jobs", tags=["jobs"])


class Accepted(BaseModel):
    """A job that was stored, and what that came to: an id that is known is no new job."""

    job: str
    outcome: str


class Cancel(BaseModel):
    """What a cancel came to: ``cancelled``, ``requested`` of a running job, or ``finished``."""

    outcome: str


def accepted(job: JobHandle[Any], response: Response) -> Accepted:
    """Return what was stored, and point the client to it."""
    response.headers["Location"] = router.url_path_for("status", job_id=job.id)
    return Accepted(job=job.id, outcome=job.outcome)


async def known_job(job_id: str) -> JobHandle[Any]:
    """Return the job of that id, whatever its queue, or answer 404."""
    try:
        return await app.find(job_id)
    except (JobNotFound, InvalidOption) as error:  # there is none, or it is no id at all
        raise HTTPException(404, str(error)) from error


KnownJob = Annotated[JobHandle[Any], Depends(known_job)]


@router.get("/{job_id}")
async def status(job: KnownJob) -> JobStatus:
    """Return all that is kept of a job: state, progress, arguments, result, errors."""
    return await job.status()


@router.get("/{job_id}/events", response_class=EventSourceResponse)
async def follow(job: KnownJob) -> AsyncIterator[ServerSentEvent]:
    """Send each piece of the job's output as it comes, and then how the job has ended."""
    async for piece in job.stream():
        yield ServerSentEvent(event="step", data=piece)
    ended = await job.status()
    yield ServerSentEvent(event="end", data={"state": ended.state, "result": ended.result})


@router.delete("/{job_id}")
async def cancel(job: KnownJob) -> Cancel:
    """Cancel a job: a waiting one never starts, a running one is asked to stop."""
    return Cancel(outcome=await job.cancel())

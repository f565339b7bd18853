"""A job as Django sees it: a `TaskResult`, of what is stored or of an attempt that runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from headrace.context import Context
from headrace.django.api import Task, TaskError, TaskResult, TaskResultStatus
from headrace.hooks import AttemptOutcome
from headrace.job import ErrorInfo, JobState
from headrace.views.jobs import JobStatus

_STATUSES = {
    JobState.ACTIVE: TaskResultStatus.RUNNING,
    JobState.COMPLETED: TaskResultStatus.SUCCESSFUL,
    JobState.FAILED: TaskResultStatus.FAILED,
    JobState.CANCELLED: TaskResultStatus.FAILED,
}
"""Any other waits, and so is ready."""


def result_id(queue: str, job_id: str) -> str:
    """Return the id of a result: the queue is in it, so that one look finds the job."""
    return f"{queue}:{job_id}"


def stored(task: Task, backend: str, status: JobStatus) -> TaskResult:
    """Return the result of a job that is kept."""
    ended_at = status.changed_at if status.state.is_terminal else None
    arguments = status.args if isinstance(status.args, dict) else {}
    result = _result(
        task,
        backend,
        result_id(status.queue, status.id),
        _STATUSES.get(status.state, TaskResultStatus.READY),
        args=arguments.get("args") or [],
        kwargs=arguments.get("kwargs") or {},
        enqueued_at=status.created_at,
        started_at=_started_at(status),
        finished_at=ended_at,
        errors=[_error(entry.type, entry.traceback) for entry in reversed(status.errors)],
        worker_ids=[status.incarnation or ""] * status.starts,
    )
    if status.state is JobState.COMPLETED:
        object.__setattr__(result, "_return_value", status.result)
    return result


def started(
    task: Task, backend: str, context: Context[Any], args: list[Any], kwargs: dict[str, Any]
) -> TaskResult:
    """Return the result of an attempt that begins now."""
    return _result(
        task,
        backend,
        result_id(context.queue, context.job_id),
        TaskResultStatus.RUNNING,
        args=args,
        kwargs=kwargs,
        enqueued_at=context.enqueued_at,
        started_at=datetime.now(UTC),
        finished_at=None,
        errors=[],
        worker_ids=[_worker_of(context)] * context.start,
    )


def end(result: TaskResult, attempt: AttemptOutcome) -> None:
    """Note what an attempt came to."""
    is_success = attempt.error is None
    status = TaskResultStatus.SUCCESSFUL if is_success else TaskResultStatus.FAILED
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", _local(datetime.now(UTC)))
    if attempt.error is None:
        object.__setattr__(result, "_return_value", attempt.result)
    else:
        result.errors.append(_of_error(attempt.error))


def _result(
    task: Task,
    backend: str,
    name: str,
    status: TaskResultStatus,
    *,
    args: list[Any],
    kwargs: dict[str, Any],
    enqueued_at: datetime,
    started_at: datetime | None,
    finished_at: datetime | None,
    errors: Sequence[TaskError],
    worker_ids: Sequence[str],
) -> TaskResult:
    return TaskResult(
        task=task,
        id=name,
        status=status,
        enqueued_at=_local(enqueued_at),
        started_at=_local(started_at),
        finished_at=_local(finished_at),
        last_attempted_at=_local(started_at),
        args=args,
        kwargs=kwargs,
        backend=backend,
        errors=list(errors),
        worker_ids=list(worker_ids),
    )


def _started_at(status: JobStatus) -> datetime | None:
    """Return when the last attempt has begun, as far as the record tells."""
    if status.state is JobState.ACTIVE:
        return status.changed_at
    if status.run_s is not None:
        return status.changed_at - timedelta(seconds=status.run_s)
    return None


def _worker_of(context: Context[Any]) -> str:
    return context.claim.nonce.partition("/")[0]


def _of_error(error: ErrorInfo) -> TaskError:
    return _error(error.type, error.traceback or error.message)


def _error(kind: str, traceback: str) -> TaskError:
    # Django looks the class up by its whole path.
    path = kind if "." in kind else f"builtins.{kind}"
    return TaskError(exception_class_path=path, traceback=traceback)


def _local(instant: datetime | None) -> datetime | None:
    """Return an instant as this project's settings have it: aware, or naive in its time zone."""
    if instant is None or settings.USE_TZ:
        return instant
    return timezone.make_naive(instant)

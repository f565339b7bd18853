"""How a task's name, settings and options become jobs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from headrace.fail_jobs import check_is_other
from headrace.job import WAITED_RESULT_TTL_MS, Job, new_job_id
from headrace.options import JobOptions, job_fields
from headrace.pace import pace_of, paced
from headrace.request import JobRequest, fresh
from headrace.settings import TaskSettings
from headrace.stored_options import encode_stored
from headrace.task_limits import TaskLimits

_JOB_FIELDS = frozenset(Job.__struct_fields__)


class JobTemplate:
    """Makes the jobs of a task that ask for the same. Reusable unless they have an id.

    Args:
        task: the task's name.
        settings: its settings.
        said: what the jobs ask for beyond them.
        lane: the kind of slot that they need, default the settings' own.

    Raises:
        InvalidOption: a value is out of bounds, or the task names itself for its failures.
    """

    def __init__(
        self, task: str, settings: TaskSettings, said: JobOptions, *, lane: str | None = None
    ) -> None:
        pace = pace_of(settings, said)
        fields = paced(task, pace, said, job_fields(settings, said))
        self._id: str | None = fields.pop("id", None)
        limits = TaskLimits(
            task,
            settings.limits,
            fields.pop("limit_keys", {}),
            fair_by=settings.fair_by,
            fair_key=fields.pop("fair_key", None),
        )
        self.keyed: TaskLimits | None = limits if limits.gates is None else None
        self.wait_timeout_ms: int | None = fields.pop("wait_timeout_ms", None)
        self._fields = fields
        self._result_ttl_ms: int = fields.get("result_ttl_ms", settings.result_ttl_ms)
        own: dict[str, Any] = {
            "queue": settings.queue,
            "priority": settings.priority,
            "max_stalls": settings.max_stalls,
            "keep_ms": settings.keep_ms,
            "on_failed": settings.on_failed,
            "slots": settings.slots,
            "lane": settings.lane if lane is None else lane,
            "options": encode_stored(fields),
            "update": fields.get("update"),
            "gates": limits.gates or "",
            **{field: value for field, value in fields.items() if field in _JOB_FIELDS},
        }
        self.blank: JobRequest = JobRequest(id="", task=task, payload=b"", **own)
        check_is_other(self.blank.on_failed, task=task)
        plainest = JobRequest("", self.blank.queue, task, b"", self.blank.priority)
        self._is_plain = self.blank == plainest and self.keyed is None

    def request(self, payload: bytes, gates: str | None = None) -> JobRequest:
        """Return a job of these encoded arguments, and of gates that depend on them."""
        job_id = self._id
        is_new_id = job_id is None
        if job_id is None:
            job_id = new_job_id()
        blank = self.blank
        if self._is_plain:
            # Every name that is passed costs time, and this is what a bulk enqueue does most.
            request = JobRequest(
                job_id,
                blank.queue,
                blank.task,
                payload,
                blank.priority,
                is_new_id=is_new_id,
                is_plain=True,
            )
        else:
            gates = blank.gates if gates is None else gates
            request = replace(blank, id=job_id, payload=payload, is_new_id=is_new_id, gates=gates)
        return fresh(request)

    def awaited(self, payload: bytes, gates: str | None = None) -> JobRequest:
        """Return a job of these encoded arguments whose result is kept for who waits for it."""
        request = self.request(payload, gates)
        if self._result_ttl_ms >= WAITED_RESULT_TTL_MS:
            return request
        keep_ms = max(WAITED_RESULT_TTL_MS, self.blank.keep_ms)
        kept = {**self._fields, "result_ttl_ms": WAITED_RESULT_TTL_MS, "keep_ms": keep_ms}
        return fresh(replace(request, options=encode_stored(kept), is_plain=False))

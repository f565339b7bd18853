"""A job that is about to be sent, as what is called before an enqueue sees and changes it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from headrace.clock import Duration
from headrace.job import Job
from headrace.options import job_fields
from headrace.request import JobRequest
from headrace.retry import Retry
from headrace.settings import TaskSettings, check_headers
from headrace.stored_options import decode_stored, encode_stored

_JOB_FIELDS = frozenset(Job.__struct_fields__)
_ONE_OF_TWO = (("delay_ms", "run_at_ms"), ("expires_in_ms", "expires_at_ms"))


class JobDraft:
    """A job before it is sent; its headers and most of its options may be changed.

    Attributes:
        headers: what its handler will find in ``context.headers``; change them as you like.
    """

    __slots__ = ("_changes", "_request", "_stored", "headers")

    def __init__(self, request: JobRequest) -> None:
        self._request = request
        self._stored = decode_stored(request.options)
        self._changes: dict[str, Any] = {}
        self.headers: dict[str, str] = dict(self._stored.get("headers", {}))

    def __repr__(self) -> str:
        return f"<JobDraft of {self.task} job {self.id!r}>"

    @property
    def id(self) -> str:
        """The job's id."""
        return self._request.id

    @property
    def task(self) -> str:
        """The task's name."""
        return self._request.task

    @property
    def queue(self) -> str:
        """The queue's name."""
        name: str = self._changes.get("queue", self._request.queue)
        return name

    @property
    def priority(self) -> int:
        """The tier, 0 to 9; 9 runs first."""
        tier: int = self._changes.get("priority", self._request.priority)
        return tier

    def set(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        max_attempts: int | None = None,
        max_stalls: int | None = None,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        expires: Duration | datetime | None = None,
    ) -> None:
        """Have the job ask for this instead of what its call and its task say.

        Each is as in `JobOptions`; None says nothing. A ``delay`` takes the place of a ``run_at``,
        and the other way round.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        changes = job_fields(
            TaskSettings(),
            {
                "queue": queue,
                "priority": priority,
                "max_attempts": max_attempts,
                "max_stalls": max_stalls,
                "timeout": timeout,
                "retry": retry,
                "delay": delay,
                "run_at": run_at,
                "expires": expires,
            },
        )
        for pair in _ONE_OF_TWO:
            if any(field in changes for field in pair):
                self._changes.update(dict.fromkeys(pair, 0))
        self._changes.update(changes)

    def request(self) -> JobRequest:
        """Return what is to be sent.

        Raises:
            InvalidOption: the headers are no strings, or over 8 KiB.
        """
        headers = check_headers(self.headers)
        if not self._changes and headers == self._stored.get("headers", {}):
            return self._request
        stored = encode_stored({**self._stored, **self._changes, "headers": headers})
        fields = {name: value for name, value in self._changes.items() if name in _JOB_FIELDS}
        return msgspec.structs.replace(self._request, **fields, options=stored, is_plain=False)


Preparer = Callable[[JobDraft], Any]
"""``def`` or ``async def prepare(draft)``, called before a job is sent; its result is ignored."""

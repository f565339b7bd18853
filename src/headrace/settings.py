"""What tasks and calls can ask for: checked, converted, and filled up with defaults. No I/O."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import cast

import msgspec

from headrace.clock import Duration, duration_ms, instant_ms
from headrace.errors import InvalidOption
from headrace.job import (
    DEFAULT_KEEP_MS,
    DEFAULT_LANE,
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_STALLS,
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    PRIORITIES,
    PROCESS_LANE,
    JobOptions,
    check_name,
    check_text,
)
from headrace.plain import plain_integer, plain_text, shown
from headrace.retry import Retry, RetryFunction

MOST_ATTEMPTS = 1_000_000


class ExecutorKind(StrEnum):
    """Where a handler runs: in the event loop, in a thread, or in a process slot."""

    COROUTINE = "coroutine"
    THREAD = "thread"
    PROCESS = "process"


class TaskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A task's defaults, converted and checked."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_stalls: int = DEFAULT_MAX_STALLS
    timeout_ms: int | None = None
    retry: Retry | RetryFunction = Retry()
    result_ttl_ms: int = DEFAULT_KEEP_MS
    keep_ms: int = DEFAULT_KEEP_MS
    executor: ExecutorKind = ExecutorKind.COROUTINE

    @property
    def is_coroutine(self) -> bool:
        """Whether the handler runs in the event loop."""
        return self.executor is ExecutorKind.COROUTINE

    @property
    def lane(self) -> str:
        """The kind of slot that its jobs need."""
        return PROCESS_LANE if self.executor is ExecutorKind.PROCESS else DEFAULT_LANE


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one call asks for, converted and checked; a template for its job."""

    id: str | None = None
    queue: str
    priority: int
    delay_ms: int = 0
    run_at_ms: int = 0
    expires_in_ms: int = 0
    expires_at_ms: int = 0
    max_stalls: int
    keep_ms: int
    result_ttl_ms: int
    lane: str = DEFAULT_LANE
    options: JobOptions = JobOptions()
    encoded_options: bytes = b""

    @property
    def is_plain(self) -> bool:
        """Whether a job of this needs no more than its id, task, payload and priority."""
        has_time = self.delay_ms or self.run_at_ms or self.expires_in_ms or self.expires_at_ms
        has_limits = self.max_stalls != DEFAULT_MAX_STALLS or self.keep_ms != DEFAULT_KEEP_MS
        has_lane = self.lane != DEFAULT_LANE
        return not (has_time or has_limits or has_lane or self.encoded_options)


def variable(*names: str) -> str | None:
    """Return what the first of these environment variables says, None if none is set.

    Raises:
        InvalidOption: none says anything, but one is set: empty, it would pass for the default.
    """
    found = [(name, os.environ[name]) for name in names if name in os.environ]
    for _, value in found:
        if value:
            return value
    if found:
        raise InvalidOption(
            f"the variable {found[0][0]} is set but empty: unset it, or give a value"
        )
    return None


def check_count(value: int, *, name: str, most: int, least: int = 1) -> int:
    """Return a whole number from ``least`` to ``most``, or raise `InvalidOption`."""
    count = plain_integer(value)
    if count is None or not least <= count <= most:
        raise InvalidOption(
            f"{name}={shown(value)} is out of bounds: use a whole number, {least:,} to {most:,}"
        )
    return count


def check_priority(value: int) -> int:
    """Return ``value`` if it is a tier, or raise `InvalidOption`."""
    tier = plain_integer(value)
    if tier is None or tier not in PRIORITIES:
        raise InvalidOption(f"priority={shown(value)} is out of bounds: use 0 to 9, 9 runs first")
    return tier


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of ``headers`` if all are strings of 8 KiB together at most."""
    if not isinstance(headers, Mapping):
        raise InvalidOption(f"headers={shown(headers)}: pass a mapping of strings to strings")
    pairs: dict[str, str] = {}
    size = 0
    for key, value in headers.items():
        name, text = plain_text(key), plain_text(value)
        said = f"headers[{shown(key)}]={shown(value)}"
        if name is None or text is None:
            raise InvalidOption(f"{said}: names and values must be strings")
        try:
            size += len(name.encode()) + len(text.encode())
        except UnicodeEncodeError:
            raise InvalidOption(f"{said} can't be encoded as UTF-8") from None
        pairs[name] = text
    if size > 8192:
        raise InvalidOption(f"the headers are {size:,} bytes, the limit is 8,192")
    return pairs


def resolve_retention(result_ttl_ms: int | None, keep_ms: int | None) -> tuple[int, int]:
    """Return both TTLs where one may not be said: a result needs its record as long as it lives.

    Raises:
        InvalidOption: the result would outlive the record.
    """
    if keep_ms is None:
        result = DEFAULT_KEEP_MS if result_ttl_ms is None else result_ttl_ms
        return result, max(DEFAULT_KEEP_MS, result)
    if result_ttl_ms is None:
        return min(DEFAULT_KEEP_MS, keep_ms), keep_ms
    if result_ttl_ms > keep_ms:
        raise InvalidOption(
            f"result_ttl={result_ttl_ms / 1000:g} is over keep={keep_ms / 1000:g}: "
            "the result can't outlive its job's record"
        )
    return result_ttl_ms, keep_ms


def _optional_ms(value: Duration | None, *, name: str, least_ms: int = 0) -> int | None:
    return None if value is None else duration_ms(value, name=name, least_ms=least_ms)


def task_settings(
    *,
    queue: str = DEFAULT_QUEUE,
    priority: int = DEFAULT_PRIORITY,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    max_stalls: int = DEFAULT_MAX_STALLS,
    timeout: Duration | None = None,
    retry: Retry | RetryFunction | None = None,
    result_ttl: Duration | None = None,
    keep: Duration | None = None,
    executor: ExecutorKind = ExecutorKind.COROUTINE,
) -> TaskSettings:
    """Check and convert what a declaration says; see `App.task`."""
    result_ttl_ms, keep_ms = resolve_retention(
        _optional_ms(result_ttl, name="result_ttl"), _optional_ms(keep, name="keep")
    )
    is_plain = not isinstance(retry, type) and not inspect.iscoroutinefunction(retry)
    if retry is not None and not (is_plain and isinstance(retry, Retry | Callable)):
        raise InvalidOption(
            f"retry={shown(retry)}: pass a Retry, or a plain function of (errors so far, last "
            "error) to seconds"
        )
    return TaskSettings(
        queue=check_name(queue, what="queue"),
        priority=check_priority(priority),
        max_attempts=check_count(max_attempts, name="max_attempts", most=MOST_ATTEMPTS),
        max_stalls=check_count(max_stalls, name="max_stalls", most=MOST_ATTEMPTS),
        timeout_ms=_optional_ms(timeout, name="timeout", least_ms=1),
        retry=Retry() if retry is None else retry,
        result_ttl_ms=result_ttl_ms,
        keep_ms=keep_ms,
        executor=executor,
    )


def call_settings(
    task: TaskSettings,
    *,
    id: str | None = None,
    queue: str | None = None,
    priority: int | None = None,
    delay: Duration | None = None,
    run_at: datetime | None = None,
    expires: Duration | datetime | None = None,
    max_attempts: int | None = None,
    max_stalls: int | None = None,
    timeout: Duration | None = None,
    retry: Retry | None = None,
    result_ttl: Duration | None = None,
    keep: Duration | None = None,
    headers: Mapping[str, str] | None = None,
) -> CallSettings:
    """Check and convert what one call asks for; see `Task.options`."""
    if delay is not None and run_at is not None:
        raise InvalidOption(f"delay={shown(delay)} and run_at={shown(run_at)}: say one of them")
    # Only the fields of a Retry itself can be stored with a job.
    if retry is not None and type(retry) is not Retry:
        raise InvalidOption(
            f"retry={shown(retry)}: a single call takes a Retry; a strategy function goes to "
            "@app.task"
        )
    ttl_ms, keep_ms = _call_retention(task, result_ttl, keep)
    options = JobOptions(
        max_attempts=None
        if max_attempts is None
        else check_count(max_attempts, name="max_attempts", most=MOST_ATTEMPTS),
        timeout_ms=_optional_ms(timeout, name="timeout", least_ms=1),
        retry=retry,
        result_ttl_ms=ttl_ms,
        keep_ms=keep_ms,
        headers={} if headers is None else check_headers(headers),
    )
    expires_at = isinstance(expires, datetime)
    return CallSettings(
        id=None if id is None else check_text(id, what="job id"),
        queue=task.queue if queue is None else check_name(queue, what="queue"),
        priority=task.priority if priority is None else check_priority(priority),
        delay_ms=_optional_ms(delay, name="delay") or 0,
        run_at_ms=0 if run_at is None else instant_ms(run_at, name="run_at"),
        expires_at_ms=instant_ms(cast(datetime, expires), name="expires") if expires_at else 0,
        expires_in_ms=0
        if expires_at
        else _optional_ms(cast("Duration | None", expires), name="expires", least_ms=1) or 0,
        max_stalls=task.max_stalls
        if max_stalls is None
        else check_count(max_stalls, name="max_stalls", most=MOST_ATTEMPTS),
        keep_ms=task.keep_ms if keep_ms is None else keep_ms,
        result_ttl_ms=task.result_ttl_ms if ttl_ms is None else ttl_ms,
        lane=task.lane,
        options=options,
        encoded_options=b"" if options == JobOptions() else msgspec.json.encode(options),
    )


def _call_retention(
    task: TaskSettings, result_ttl: Duration | None, keep: Duration | None
) -> tuple[int | None, int | None]:
    if result_ttl is None and keep is None:
        return None, None
    ttl_ms = _optional_ms(result_ttl, name="result_ttl")
    keep_ms = _optional_ms(keep, name="keep")
    if ttl_ms is None and keep_ms is not None:
        return min(task.result_ttl_ms, keep_ms), keep_ms
    if ttl_ms is not None and keep_ms is None:
        return ttl_ms, max(task.keep_ms, ttl_ms)
    return resolve_retention(ttl_ms, keep_ms)

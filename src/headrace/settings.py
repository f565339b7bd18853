"""What a task's jobs get where a call says nothing, and checks of what callers pass. No I/O."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from headrace.errors import InvalidOption
from headrace.hooks import Hooks
from headrace.job import (
    DEFAULT_KEEP_MS,
    DEFAULT_LANE,
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_STALLS,
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    PRIORITIES,
    PROCESS_LANE,
    check_name,
)
from headrace.limit import Limit
from headrace.plain import plain_integer, plain_text, shown
from headrace.retry import Retry, RetryFunction, RetryRules

MOST_ATTEMPTS = 1_000_000
DEFAULT_SKEW_GRACE_MS = 300_000
URL_VARIABLES = ("HEADRACE_URL", "HEADRACE_REDIS_URL", "REDIS_URL")
"""What may say where the storage is, in the order in which they count."""


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
    retry_rules: RetryRules = RetryRules()
    result_ttl_ms: int = DEFAULT_KEEP_MS
    keep_ms: int = DEFAULT_KEEP_MS
    on_failed: str = ""
    slots: int = 1
    executor: ExecutorKind = ExecutorKind.COROUTINE
    needs: str = ""
    hooks: Hooks | None = None
    skew_grace_ms: int = DEFAULT_SKEW_GRACE_MS
    validate: bool = False
    aliases: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    fair_by: str = ""
    debounce_ms: int = 0
    throttle_ms: int = 0

    @property
    def is_coroutine(self) -> bool:
        """Whether the handler runs in the event loop."""
        return self.executor is ExecutorKind.COROUTINE

    @property
    def lane(self) -> str:
        """The kind of slot that its jobs need."""
        if self.needs:
            return self.needs
        return PROCESS_LANE if self.executor is ExecutorKind.PROCESS else DEFAULT_LANE


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


def check_flag(value: bool, *, name: str) -> bool:  # noqa: FBT001 (it is what is checked)
    """Return a truth value, or raise `InvalidOption`."""
    if not isinstance(value, bool):
        raise InvalidOption(f"{name}={shown(value)} is not valid: use True or False")
    return value


def check_needs(lane: str) -> str:
    """Return the lane that a task needs, or raise `InvalidOption`; two names have a meaning."""
    name = check_name(lane, what="needs")
    if name == DEFAULT_LANE:
        raise InvalidOption(f"needs={name!r} is what tasks have that say nothing: leave it out")
    if name == PROCESS_LANE:
        raise InvalidOption(
            f"needs={name!r} is the lane of tasks with executor='process': say that instead"
        )
    return name


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


def resolve_retention(
    result_ttl_ms: int | None, keep_ms: int | None, settings: TaskSettings
) -> tuple[int, int]:
    """Return both TTLs where one may not be said: a result needs its record as long as it lives.

    Raises:
        InvalidOption: the result would outlive the record.
    """
    if keep_ms is None:
        result = settings.result_ttl_ms if result_ttl_ms is None else result_ttl_ms
        return result, max(settings.keep_ms, result)
    if result_ttl_ms is None:
        return min(settings.result_ttl_ms, keep_ms), keep_ms
    if result_ttl_ms > keep_ms:
        raise InvalidOption(
            f"result_ttl={result_ttl_ms / 1000:g} is over keep={keep_ms / 1000:g}: "
            "the result can't outlive its job's record"
        )
    return result_ttl_ms, keep_ms

"""The options of a write as the helpers take them: by Python's names, and values of its types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict

from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption
from headrace.job import check_name, check_text
from headrace.nearest import nearest
from headrace.plain import shown
from headrace.settings import check_count, check_flag
from headrace.spark.options import LEAST_MS, WriteOptions
from headrace.spark.urls import check_shared
from headrace.storage.limits import BATCH_LIMIT


class WriteArguments(TypedDict, total=False):
    """How jobs are written; each may be left out.

    Attributes:
        queue: of jobs whose row names none, default ``default``.
        url: where to, default: as ``HEADRACE_URL`` says in each process of Spark, so that no secret
            is in a plan.
        tenant: whose queue, default ``default``.
        task: of jobs whose row names none; default: each row has to.
        commit: ``direct``, each row by itself, or ``atomic``, all or none; default ``direct``.
        id_column: has the ids of jobs, default ``id``.
        payload_column: has their arguments, JSON objects as text or bytes; default ``payload``.
        allow_random_ids: write rows without ids directly, though Spark may repeat a task and bring
            them in twice; default no.
        replace_ended: let a job take the place of a failed or cancelled one of its id, default no.
        batch_size: most jobs in a call, default 500, and at most that.
        stage_ttl: how long what is staged is kept without a commit, default 6 hours, at least a
            minute; seconds or a `timedelta`.
        keep_write: how long an atomic write is known, default 7 days, at least a minute.
        retry_for: how long calls are repeated while the storage is away, default 60 seconds.
    """

    queue: str | None
    url: str | None
    tenant: str | None
    task: str | None
    commit: Literal["direct", "atomic"] | None
    id_column: str | None
    payload_column: str | None
    allow_random_ids: bool | None
    replace_ended: bool | None
    batch_size: int | None
    stage_ttl: Duration | None
    keep_write: Duration | None
    retry_for: Duration | None


def options_of(said: WriteArguments) -> WriteOptions:
    """Return what arguments say of a write.

    Raises:
        InvalidOption: one is not known or not valid.
    """
    fields: dict[str, Any] = {}
    for name, value in said.items():
        if name not in _CHECKS:
            meant = nearest(name, _CHECKS)
            advice = f"did you mean {meant}?" if meant else f"known are {', '.join(_CHECKS)}"
            raise InvalidOption(f"{shown(name)} is no argument of a write: {advice}")
        if value is not None:
            field, check = _CHECKS[name]
            fields[field] = check(value, name)
    return WriteOptions(**fields)


def _url(value: str, _name: str) -> str:
    return check_shared(value) if value else ""


def _word(value: str, name: str) -> str:
    return check_name(value, what=name)


def _text(value: str, name: str) -> str:
    return check_text(value, what=name)


def _is_atomic(value: str, name: str) -> bool:
    if value not in {"direct", "atomic"}:
        raise InvalidOption(f"{name}={shown(value)} is not known: use direct or atomic")
    return value == "atomic"


def _flag(value: bool, name: str) -> bool:  # noqa: FBT001 (it is what is checked)
    return check_flag(value, name=name)


def _batch_size(value: int, name: str) -> int:
    return check_count(value, name=name, most=BATCH_LIMIT)


def _kept(value: Duration, name: str) -> int:
    return duration_ms(value, name=name, least_ms=LEAST_MS)


def _tried(value: Duration, name: str) -> int:
    return duration_ms(value, name=name)


_CHECKS: dict[str, tuple[str, Callable[[Any, str], object]]] = {
    "queue": ("queue", _word),
    "url": ("url", _url),
    "tenant": ("tenant", _word),
    "task": ("task", _text),
    "commit": ("is_atomic", _is_atomic),
    "id_column": ("id_column", _text),
    "payload_column": ("payload_column", _text),
    "allow_random_ids": ("allows_random_ids", _flag),
    "replace_ended": ("replaces_ended", _flag),
    "batch_size": ("batch_size", _batch_size),
    "stage_ttl": ("stage_ttl_ms", _kept),
    "keep_write": ("keep_write_ms", _kept),
    "retry_for": ("retry_for_ms", _tried),
}
"""Where an argument goes, and how it is checked."""

"""The options of a write as the helpers take them: by Python's names, and values of its types."""

from __future__ import annotations

import re
from typing import Any, Literal, TypedDict

from headrace.clock import Duration
from headrace.errors import InvalidOption
from headrace.nearest import nearest
from headrace.plain import shown
from headrace.spark.options import WRITE, WriteOptions


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
        option = _OPTIONS.get(name)
        if option is None:
            meant = nearest(name, _OPTIONS)
            advice = f"did you mean {meant}?" if meant else f"known are {', '.join(_OPTIONS)}"
            raise InvalidOption(f"{shown(name)} is no argument of a write: {advice}")
        if value is not None:
            fields[option.field] = option.check(name, value)
    return WriteOptions(**fields)


def _argument(option: str) -> str:
    """Return the name of an option as Python spells it."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", option)


_OPTIONS = {
    name: option
    for name, option in ((_argument(said), option) for said, option in WRITE.items())
    if name in WriteArguments.__annotations__
}

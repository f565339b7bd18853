"""The JSON documents of ``-o json`` that are of commands alone; docs/cli.md describes all of them.

Those of jobs and queues are what `headrace.views` has. Fields are added, never renamed. Instants
are RFC 3339 in UTC, durations whole milliseconds in names that end in ``_ms``, and what there is
none of is null.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

import msgspec

from headrace.clock import datetime_of
from headrace.codec import read
from headrace.json_codec import JSON
from headrace.storage.incarnations import IncarnationInfo

_decode = JSON.decoder(Any)


class WorkerView(msgspec.Struct, kw_only=True):
    """One worker process with the queues it serves: ``workers``."""

    name: str
    host: str
    pid: int
    version: str
    app_version: str
    concurrency: int
    process_slots: int
    lanes: dict[str, int]
    lease_ms: int
    started_at: str | None
    active: int
    silent_ms: int
    condemned: bool
    queues: dict[str, str]


class Changed(msgspec.Struct, kw_only=True):
    """What a command that changes many jobs did.

    ``matched`` were there when it looked, ``changed`` of them were still so when it acted.
    """

    matched: int
    changed: int
    dry_run: bool


class CancelledJobs(Changed, kw_only=True):
    """What ``job cancel`` did: how many of each verdict."""

    cancelled: int
    requested: int
    finished: int
    not_found: int


def instant(instant_ms: int) -> str | None:
    """Return an instant as the documents show it."""
    if not instant_ms:
        return None
    text: str = msgspec.to_builtins(datetime_of(instant_ms).astimezone(UTC))
    return text


def worker_view(found: dict[str, IncarnationInfo]) -> WorkerView:
    """Return a worker from what it says of itself in each queue."""
    first = min(found.values(), key=lambda info: info.registered_ms)
    return WorkerView(
        name=first.name,
        host=first.host,
        pid=first.pid,
        version=first.version,
        app_version=first.app_version,
        concurrency=first.concurrency,
        process_slots=first.process_slots,
        lanes=first.lanes,
        lease_ms=first.lease_ms,
        started_at=instant(first.registered_ms),
        active=sum(info.active for info in found.values()),
        silent_ms=max(info.silent_ms for info in found.values()),
        condemned=any(info.is_condemned for info in found.values()),
        queues={queue: info.incarnation for queue, info in sorted(found.items())},
    )


def raw(stored: bytes) -> msgspec.Raw:
    """Return stored JSON in one line, no number of which loses digits; all else as a string."""
    try:
        read(_decode, stored)
    except msgspec.DecodeError:
        return msgspec.Raw(msgspec.json.encode(stored.decode(errors="replace")))
    return msgspec.Raw(msgspec.json.format(stored, indent=-1))

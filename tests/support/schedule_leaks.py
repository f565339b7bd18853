"""What must hold of the keys of a tenant's schedules: each record is found, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.storage.limits import SCHEDULE_HISTORY

LASTING = {"schedule", "schedule-history", "schedules", "schedules-of", "schedules-due"}
PASSING = {"schedules-heard", "schedule-releases", "damaged"}
FIELDS = {b"app", b"version", b"due_ms", b"body"}

Keys = dict[str, dict[str, tuple[Any, bool]]]
"""By kind and name, the value of a key and whether it has a TTL."""


def problems(keys: Keys) -> Iterator[str]:
    """Yield what is wrong with the keys of one tenant that are no queue's."""
    for kind, named in keys.items():
        for name, (_, has_ttl) in named.items():
            if kind not in LASTING | PASSING:
                yield f"{kind}:{name} is not a key of ours"
            elif has_ttl != (kind in PASSING):
                yield f"{kind}:{name} {'has' if has_ttl else 'lacks'} a TTL"
    records = _values(keys, "schedule")
    for name, record in records.items():
        if set(record) != FIELDS:
            yield f"schedule {name!r} has the fields {set(record)}"
    yield from _places(keys, records)
    for name, entries in _values(keys, "schedule-history").items():
        if name not in records or len(entries) > SCHEDULE_HISTORY:
            yield f"there are {len(entries)} entries of the history of {name!r}"


def _places(keys: Keys, records: dict[str, Any]) -> Iterator[str]:
    """Check that each schedule is in each index, and nothing else is."""
    by_app: dict[str, set[str]] = {}
    for name, record in records.items():
        if app := record[b"app"].decode():
            by_app.setdefault(app, set()).add(name)
    expected = {
        "schedules": {"": set(records)} if records else {},
        "schedules-due": {"": set(records)} if records else {},
        "schedules-of": by_app,
    }
    for index, wanted in expected.items():
        found = {
            name: {member.decode() for member, _ in members}
            for name, members in _values(keys, index).items()
        }
        if found != wanted:
            yield f"{index} {found}, the records say {wanted}"


def _values(keys: Keys, kind: str) -> dict[str, Any]:
    return {name: value for name, (value, _) in keys.get(kind, {}).items()}

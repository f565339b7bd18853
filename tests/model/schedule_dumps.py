"""A tenant's schedules and releases, read from keys and from tables, in the model's form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.storage.limits import RELEASES_TTL_MS
from headrace.storage.redis import keys
from headrace.storage.sqlite.engine.step import Step
from tests.model.places import Dump
from tests.model.redis_dump import ServerState
from tests.model.sqlite_dump import rows

Known = tuple[str, str, int, int, bool]
"""Of a release: app, digest, place, when it was heard of last, whether it has left."""


def releases(known: Iterable[Known], now: int) -> dict[str, list[tuple[str, int, bool]]]:
    """Return the releases of each app in their order, without those that are forgotten."""
    found: dict[str, list[tuple[str, int, bool]]] = {}
    for app, digest, _, seen, has_left in sorted(known, key=lambda each: each[2]):
        if seen + RELEASES_TTL_MS > now:
            found.setdefault(app, []).append((digest, seen, has_left))
    return found


def of_server(server: ServerState, tenant: str, now: int) -> Dump:
    """Return those on a Redis server."""
    root = keys.tenant_root(tenant)

    def named(kind: str) -> Iterator[tuple[str, Any]]:
        prefix = f"{root}:{kind}:"
        for key, (value, _) in server.keys.items():
            if key.startswith(prefix):
                yield key.removeprefix(prefix), value

    due = server.keys.get(f"{root}:schedules-due")
    looks = {} if due is None else {member.decode(): int(at) for member, at in due.value}
    histories = dict(named("schedule-history"))
    return {
        "schedules": {
            name: {
                "app": record[b"app"].decode(),
                "version": int(record[b"version"]),
                "due": int(record[b"due_ms"]),
                "look": looks[name],
                "body": record[b"body"],
                "history": histories.get(name, []),
            }
            for name, record in named("schedule")
        },
        "releases": releases(
            (
                _release(app, digest.decode(), word.decode())
                for app, known in named("schedule-releases")
                for digest, word in known.items()
            ),
            now,
        ),
    }


def _release(app: str, digest: str, word: str) -> Known:
    place, seen, *left = word.split()
    return app, digest, int(place), int(seen), bool(left)


def of_database(step: Step, tenant: str) -> Dump:
    """Return those in an embedded database."""
    db = step.db
    history = "SELECT body FROM schedule_history WHERE schedule = ? ORDER BY key DESC"
    return {
        "schedules": {
            row["id"]: {
                "app": row["app"],
                "version": row["version"],
                "due": row["due_ms"],
                "look": row["look_ms"],
                "body": row["body"],
                "history": [entry["body"] for entry in rows(db, history, row["key"])],
            }
            for row in rows(db, "SELECT * FROM schedules WHERE tenant = ?", tenant)
        },
        "releases": releases(
            (
                (row["app"], row["digest"], row["place"], row["joined_ms"], bool(row["has_left"]))
                for row in rows(db, "SELECT * FROM schedule_releases WHERE tenant = ?", tenant)
            ),
            step.now_ms,
        ),
    }

"""A queue's stages and writes, read from keys and from tables, in the model's form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.storage.sqlite.engine.step import QueueName, Step
from tests.model.places import Dump
from tests.model.redis_dump import Deaths, ServerState
from tests.model.sqlite_dump import rows

Name = tuple[str, str]
"""Token and write."""


def of_server(server: ServerState, root: str, deaths: Deaths) -> Dump:
    """Return those on a Redis server."""

    def named(kind: str) -> Iterator[tuple[str, str, Any]]:
        prefix = f"{root}:{kind}:"
        for key, (value, _) in server.keys.items():
            if key.startswith(prefix):
                yield key, key.removeprefix(prefix), value

    committed = server.keys.get(f"{root}:committed")
    return {
        "stages": {
            _name(name): {"ids": [list(_ids(call)) for call in calls], "dies": deaths.of(key)}
            for key, name, calls in named("stage")
        },
        "to publish": [_name(name.decode()) for name in committed.value] if committed else [],
        "writes": {
            name: {
                **{field: int(write[field.encode()]) for field in ("batch", "jobs", "added")},
                "stages_left": int(write[b"stages_left"]),
                "keep": int(write[b"keep_ms"]),
                "dies": deaths.of(key),
            }
            for key, name, write in named("write")
        },
    }


def _name(name: str) -> Name:
    token, _, write_id = name.partition(":")
    return token, write_id


def _ids(packed: bytes) -> Iterator[str]:
    """Yield the ids of jobs in either of their forms, see ``lua/lib/batch.lua``."""
    words = msgspec.msgpack.decode(packed, type=list[str])
    if words[0].startswith("\t"):
        yield from words[2::2]
        return
    at = 0
    while at < len(words):
        yield words[at]
        is_plain = words[at + 1][1] == "1"
        at += 4 if is_plain else 5 + 2 * int(words[at + 4])


def of_database(step: Step, name: QueueName) -> Dump:
    """Return those in an embedded database, but for what its time is over of."""
    found = rows(step.db, "SELECT key FROM queues WHERE tenant = ? AND name = ?", *name)
    queue = found[0]["key"] if found else -1
    alive = "queue = ? AND (purge_at_ms IS NULL OR purge_at_ms > ?)"
    stages = rows(step.db, f"SELECT * FROM stages WHERE {alive}", queue, step.now_ms)  # noqa: S608
    writes = rows(step.db, f"SELECT * FROM writes WHERE {alive}", queue, step.now_ms)  # noqa: S608
    committed = [stage for stage in stages if stage["place"] is not None]
    return {
        "stages": {
            (stage["token"], stage["write_id"]): {
                "ids": [
                    [job[0] for job in msgspec.msgpack.decode(chunk["body"])]
                    for chunk in rows(
                        step.db,
                        "SELECT body FROM staged WHERE stage = ? ORDER BY key",
                        stage["key"],
                    )
                ],
                "dies": stage["purge_at_ms"],
            }
            for stage in stages
        },
        "to publish": [
            (stage["token"], stage["write_id"])
            for stage in sorted(committed, key=lambda stage: stage["place"])
        ],
        "writes": {
            write["id"]: {
                **{name: write[name] for name in ("batch", "stages_left", "jobs", "added")},
                "keep": write["keep_ms"],
                "dies": write["purge_at_ms"],
            }
            for write in writes
        },
    }

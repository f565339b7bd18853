"""What must hold of the gates in an embedded database after every step."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any

from headrace.storage.sqlite.gates import Gates

Row = dict[str, Any]


def rows(db: sqlite3.Connection, table: str) -> list[Row]:
    """Return all rows of a table, by column names."""
    cursor = db.execute(f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def dump(db: sqlite3.Connection) -> dict[str, Any]:
    """Return all that is kept of limits and gates, by keys that name them."""
    found: dict[str, Any] = {f"limit:{row['name']}": row for row in rows(db, "limits")}
    return found | {f"gate:{row['name']}": row for row in rows(db, "gates")}


def problems(db: sqlite3.Connection, now_ms: int) -> Iterator[str]:
    """Return which rules the gates break."""
    queues = {row["key"]: row for row in rows(db, "queues")}
    jobs = [row for row in rows(db, "jobs") if not row["is_next"]]
    for key, queue in queues.items():
        of_queue = [job for job in jobs if job["queue"] == key]
        gates = {row["name"]: row for row in rows(db, "gates") if row["queue"] == key}
        yield from _place_problems(of_queue, gates)
        yield from _line_problems(db, queue, of_queue, gates, now_ms)
        strikes = [row for row in rows(db, "strikes") if row["queue"] == key]
        flags = (
            any(not one["conditions"] for one in strikes),
            any(one["conditions"] for one in strikes),
        )
        if (queue["is_struck"], queue["has_conditions"]) != flags:
            yield f"{queue['name']} tells claims otherwise than {flags} of its strikes"


def has_place(name: str, state: str) -> bool:
    """Whether jobs of a gate have a place in it in that state: only the ready ones of a window."""
    return state == "queued" or (state == "active" and not name.startswith("fair:"))


def _place_problems(jobs: list[Row], gates: dict[str, Row]) -> Iterator[str]:
    expected: Counter[tuple[str, str]] = Counter()
    for job in jobs:
        for name in (job["gates"] or "").split("\n"):
            if name and has_place(name, job["state"]):
                expected[name, job["state"]] += 1
    for name in gates.keys() | {name for name, _ in expected}:
        row = gates.get(name, {"ready": 0, "active": 0, "due_ms": None, "owed": 0})
        counts = (expected[name, "queued"], expected[name, "active"])
        if (row["ready"], row["active"]) != counts:
            yield f"gate {name!r} counts {row['ready']}, {row['active']} jobs of {counts}"


def _is_no_line(name: str, gates: str) -> bool:
    """Whether a job with these gates can't stand there; the line of a strike has no tab."""
    return "\t" in name and name not in gates.split("\n")


def _line_problems(
    db: sqlite3.Connection, queue: Row, jobs: list[Row], gates: dict[str, Row], now_ms: int
) -> Iterator[str]:
    for job in jobs:
        is_blocked = job["state"] == "blocked"
        if is_blocked != (job["parked"] is not None) or is_blocked != (job["number"] is not None):
            yield f"{job['id']!r} is {job['state']} and stands in {job['parked']!r}"
        elif is_blocked and _is_no_line(job["parked"], job["gates"] or ""):
            yield f"{job['id']!r} stands in {job['parked']!r}, which is no gate of it"
    opening = {row["name"] for row in rows(db, "limits") if row["opened"] is not None}
    dues = [row["due_ms"] for row in gates.values() if row["due_ms"] is not None]
    first_ms = queue["gate_due_ms"]
    if not opening and first_ms != min(dues, default=None):
        yield f"{queue['name']} has a gate due at {first_ms}, of {sorted(dues)}"
    known = Gates(db, queue["key"], now_ms=now_ms)
    for name in {job["parked"] for job in jobs if job["parked"] is not None}:
        row = gates.get(name)
        is_noted = (row is not None and row["due_ms"] is not None) or name.split("\t")[0] in opening
        if known.gate(name).has_room and not is_noted:
            yield f"the line of {name!r} has room and stays closed"

"""What must hold of an embedded database after every step, and all that it holds."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any

from headrace.storage.sqlite.engine.step import Step
from tests.support import gate_check

# Hints, and the order in which things came: no state.
PASSING = {"key", "wake"}
CALL_MEMORY = {"claim", "settle", "settled"}
COUNTED = ("queued", "scheduled", "retrying", "active", "blocked")
TERMINAL = {"completed", "failed", "cancelled"}
OF_A_JOB = ("payloads", "errors", "outputs")
OF_SCHEDULES = (
    "schedules",
    "schedule_history",
    "schedule_listeners",
    "schedule_releases",
    "fired",
    "idempotency",
)


def _rows(db: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    cursor = db.execute(f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def dump(step: Step, *, with_calls: bool) -> dict[str, Any]:
    """Return all that is stored, by keys that name what they are of."""
    found = _queues(step)
    names = {row["key"]: row["name"] for row in _rows(step.db, "queues")}
    job_ids = {}
    for row in _rows(step.db, "jobs"):
        if row["purge_at_ms"] is None or row["purge_at_ms"] > step.now_ms:
            kind = "next" if row["is_next"] else "job"
            found[f"{kind}:{names[row['queue']]}:{row['id']}"] = row
            job_ids[row["key"]] = row["id"]
    for table in OF_A_JOB:
        for row in _rows(step.db, table):
            if row["job"] in job_ids:
                found.setdefault(f"{table}:{job_ids[row['job']]}", []).append(row)
    left_out = set() if with_calls else CALL_MEMORY
    for row in _rows(step.db, "incarnations"):
        kept = {field: value for field, value in row.items() if field not in left_out}
        found[f"worker:{row['name']}"] = kept
    found |= _bulk_writes(step) | gate_check.dump(step.db)
    others = ["events", "stats", "messages", "lanes", "readers", *OF_SCHEDULES]
    for table in (*others, *(["calls"] if with_calls else [])):
        if rows := _rows(step.db, table):
            found[table] = rows
    return found


def _bulk_writes(step: Step) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names = {}
    for table, name in (("stages", "token"), ("writes", "id")):
        for row in _rows(step.db, table):
            if row["purge_at_ms"] is None or row["purge_at_ms"] > step.now_ms:
                found[f"{table}:{row['queue']}:{row[name]}"] = row
                names[table, row["key"]] = row[name]
    for row in _rows(step.db, "staged"):
        if token := names.get(("stages", row["stage"])):
            found.setdefault(f"staged:{token}", []).append(row)
    return found


def _queues(step: Step) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in _rows(step.db, "queues"):
        kept = {field: value for field, value in row.items() if field not in PASSING}
        if kept.pop("is_listed"):
            found.setdefault(f"hr:{{{row['tenant']}}}:queues", []).append(row["name"])
        if kept["tail"] or kept["event"] or kept["is_paused"]:
            found[f"queue:{row['name']}"] = kept
    return found


def problems(step: Step) -> list[str]:
    """Return which rules the stored data break."""
    db = step.db
    jobs = _rows(db, "jobs")
    found = [str(row) for row in db.execute("PRAGMA integrity_check") if row != ("ok",)]
    workers = {row["key"]: row for row in _rows(db, "incarnations")}
    for job in jobs:
        found += _job_problems(job, workers)
    found += _successor_problems(jobs)
    for queue in _rows(db, "queues"):
        found += _count_problems(queue, [job for job in jobs if job["queue"] == queue["key"]])
    keys = {job["key"] for job in jobs}
    for table in OF_A_JOB:
        for row in _rows(db, table):
            if row["job"] not in keys:
                found.append(f"{table} {row['job']} is of no job")
    for job_id, n in Counter(row["job"] for row in _rows(db, "errors")).items():
        if n > 10:
            found.append(f"job {job_id} has {n} errors")
    found += gate_check.problems(db, step.now_ms)
    found += _schedule_problems(db)
    found += _bulk_write_problems(db)
    return found


def _job_problems(job: dict[str, Any], workers: dict[int, dict[str, Any]]) -> Iterator[str]:
    state, name = job["state"], job["id"]
    places = {
        "seq": state == "queued",
        "due_ms": state in ("scheduled", "retrying"),
        "owner": state == "active",
        "purge_at_ms": state in TERMINAL,
    }
    for field, is_expected in places.items():
        if (job[field] is not None) != is_expected:
            yield f"{name!r} is {state} and its {field} is {job[field]}"
    owner = workers.get(job["owner"])
    if state == "active":
        claimant = job["nonce"].partition("/")[0]
        if owner is None or (owner["name"], owner["queue"]) != (claimant, job["queue"]):
            yield f"{name!r} is active, claimed by {claimant!r} and owned by {owner}"


def _successor_problems(jobs: list[dict[str, Any]]) -> Iterator[str]:
    blocking = {(job["queue"], job["id"]) for job in jobs if job["next_update"]}
    for job in jobs:
        if job["is_next"] and job["state"] != "blocked":
            yield f"{job['id']!r} is {job['state']} and its is_next is {job['is_next']}"
        if job["next_update"] and job["state"] != "active":
            yield f"{job['id']!r} is {job['state']} and has a successor"
        if job["next_due_ms"] and not job["is_next"]:
            yield f"{job['id']!r} is {job['state']} and to be due once it is not blocked"
    blocked = {(job["queue"], job["id"]) for job in jobs if job["is_next"]}
    for _, job_id in blocking ^ blocked:
        yield f"{job_id!r} is blocked by none, or blocks none"


def _schedule_problems(db: sqlite3.Connection) -> Iterator[str]:
    schedules = {row["key"]: row for row in _rows(db, "schedules")}
    for row in schedules.values():
        if row["look_ms"] < row["due_ms"]:
            yield f"schedule {row['id']!r} is to be looked at before it is due"
    entries = Counter(row["schedule"] for row in _rows(db, "schedule_history"))
    for key, n in entries.items():
        if key not in schedules or n > 100:
            yield f"schedule {key} has {n} entries in its history"


def _bulk_write_problems(db: sqlite3.Connection) -> Iterator[str]:
    stages = {row["key"]: row for row in _rows(db, "stages")}
    chunks = Counter(row["stage"] for row in _rows(db, "staged"))
    for key in chunks.keys() - stages.keys():
        yield f"{chunks[key]} chunks are of no stage"
    left: Counter[tuple[int, str]] = Counter()
    for row in stages.values():
        name = f"stage {row['token']!r} of {row['write_id']!r}"
        if (row["place"] is None) == (row["purge_at_ms"] is None):
            yield f"{name} has place {row['place']} and an end at {row['purge_at_ms']}"
        if row["place"] is not None:
            left[row["queue"], row["write_id"]] += 1
            if not chunks[row["key"]]:
                yield f"{name} is to be published, and nothing is there"
    for row in _rows(db, "writes"):
        n = left.pop((row["queue"], row["id"]), 0)
        if row["stages_left"] != n:
            yield f"write {row['id']!r} has {row['stages_left']} stages left, of {n}"
        if (row["purge_at_ms"] is None) != bool(n):
            yield f"write {row['id']!r} has {n} stages left, and an end at {row['purge_at_ms']}"
    if left:
        yield f"stages are committed of no write: {left}"


def _count_problems(queue: dict[str, Any], jobs: list[dict[str, Any]]) -> Iterator[str]:
    states = Counter(job["state"] for job in jobs)
    expected = {state: states[state] for state in COUNTED}
    expected["finished"] = states["completed"] + states["cancelled"]
    expected["dead"] = states["failed"]
    for field, n in expected.items():
        if queue[field] != n:
            yield f"{queue['name']} counts {queue[field]} {field} jobs of {n}"

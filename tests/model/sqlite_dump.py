"""All that a queue keeps in an embedded database, read from its tables, in the model's form."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

import msgspec

from headrace.job import ErrorInfo, JobState, Verdict
from headrace.storage.queues import QueueSettings
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.verbs.enqueue import read_answer
from tests.model.places import CALLS_TTL_MS, Dump
from tests.model.updates import DUMPED

COUNTS = ("queued", "scheduled", "retrying", "active", "blocked")
# fmt: off
PLAIN = {
    "task": "task", "tier": "tier", "lane": "lane", "created": "created_ms", "at": "changed_ms",
    "expires": "expires_at_ms", "max_stalls": "max_stalls", "keep": "keep_ms", "options": "options",
    "due": "due_ms", "epoch": "epoch", "nonce": "nonce", "failures": "failures", "stalls": "stalls",
    "run": "run_ms", "reason": "reason", "error": "error",
    "dies": "purge_at_ms", "on_failed": "on_failed",
    "slots": "slots",
}
"""The model's names, and the columns of a job's row."""
# fmt: on
_IDEMPOTENT = "SELECT * FROM idempotency WHERE queue = ? AND purge_at_ms > ?"
OF_A_QUEUE = (
    *("jobs", "incarnations", "calls", "stats", "lanes", "fired", "stages", "writes", "readers"),
    "idempotency",
)

Row = dict[str, Any]
PutBack = tuple[int, int, ErrorInfo]


def rows(db: sqlite3.Connection, sql: str, *values: object) -> list[Row]:
    """Return what a statement finds, by column names."""
    cursor = db.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def dump(step: Step, name: QueueName) -> Dump:
    """Return all that is kept of one queue."""
    db = step.db
    found = rows(db, "SELECT * FROM queues WHERE tenant = ? AND name = ?", *name)
    queue: Row = found[0] if found else {"key": -1, "is_paused": 0}
    names = QueueSettings.__struct_fields__
    every_job = rows(db, "SELECT * FROM jobs WHERE queue = ? ORDER BY key", queue["key"])
    jobs = [job for job in every_job if not job["is_next"]]
    workers = rows(db, "SELECT * FROM incarnations WHERE queue = ?", queue["key"])
    owners = {worker["key"]: worker["name"] for worker in workers}
    alive = [job for job in jobs if job["purge_at_ms"] is None or job["purge_at_ms"] > step.now_ms]
    held: dict[str, list[str]] = {}
    for job in alive:
        if job["owner"] is not None:
            held.setdefault(owners[job["owner"]], []).append(job["id"])
    return {
        "paused": bool(queue["is_paused"]),
        "settings": QueueSettings(**{field: queue[field] for field in names if field in queue}),
        "aged": queue.get("aged", 0),
        "counts": {
            **{state: queue.get(state, 0) for state in COUNTS},
            "history": queue.get("finished", 0),
            "dead": queue.get("dead", 0),
        },
        "queued by lane": _queued_by_lane(alive),
        "lanes": {
            row["task"]: row["lane"]
            for row in rows(db, "SELECT * FROM lanes WHERE queue = ?", queue["key"])
        },
        "output": _output(step, alive),
        "jobs": {job["id"]: _job(step, job) for job in alive},
        "successors": {
            job["id"]: _successor(step, job, active)
            for job in every_job
            if job["is_next"]
            for active in jobs
            if active["id"] == job["id"]
        },
        "ready": _ready(alive),
        "delayed": [
            job["id"]
            for job in sorted(alive, key=lambda job: (job["due_ms"] or 0, job["key"]))
            if job["due_ms"] is not None
        ],
        "finished": {
            j["id"]: j["changed_ms"] for j in jobs if j["state"] in ("completed", "cancelled")
        },
        "dead": {job["id"]: job["changed_ms"] for job in jobs if job["state"] == "failed"},
        "held": {incarnation: sorted(ids) for incarnation, ids in held.items()},
        "workers": {worker["name"]: _worker(worker) for worker in workers},
        "calls": _calls(step, queue["key"]),
        "fired": {
            row["schedule"]: row["instant_ms"]
            for row in rows(db, "SELECT * FROM fired WHERE queue = ?", queue["key"])
        },
        "idempotent": {
            row["name"]: (row["job"], row["purge_at_ms"])
            for row in rows(db, _IDEMPOTENT, queue["key"], step.now_ms)
        },
        "readers": {
            row["name"]: (row["number"], row["at_ms"])
            for row in rows(db, "SELECT * FROM readers WHERE queue = ?", queue["key"])
        },
    }


def _ready(jobs: list[Row]) -> dict[str, list[str]]:
    ready: dict[str, list[str]] = {}
    for job in sorted(jobs, key=lambda job: job["seq"] or 0):
        if job["seq"] is not None:
            ready.setdefault(f"{job['lane']}:{job['tier']}", []).append(job["id"])
    return ready


def _queued_by_lane(jobs: list[Row]) -> dict[str, int]:
    return dict(Counter(job["lane"] for job in jobs if job["seq"] is not None))


def _output(step: Step, jobs: list[Row]) -> dict[str, tuple[int, dict[int, bytes]]]:
    found: dict[str, tuple[int, dict[int, bytes]]] = {}
    for job in jobs:
        sql = "SELECT * FROM outputs WHERE job = ? ORDER BY epoch DESC, number"
        for row in rows(step.db, sql, job["key"]):
            # Pieces of another attempt would be wrong, and are shown under a number of their own.
            epoch, pieces = found.setdefault(job["id"], (row["epoch"], {}))
            pieces[row["number"] - 10_000 * (epoch - row["epoch"])] = row["body"]
    return found


def _job(step: Step, row: Row) -> Dump:
    values = {name: row[column] for name, column in PLAIN.items()}
    beside = step.db.execute("SELECT body FROM payloads WHERE job = ?", (row["key"],)).fetchone()
    errors = rows(step.db, "SELECT * FROM errors WHERE job = ? ORDER BY key DESC", row["key"])
    has_result = row["result"] is not None and not (
        row["result_purge_at_ms"] is not None and row["result_purge_at_ms"] <= step.now_ms
    )
    return {
        **values,
        "state": JobState(row["state"]),
        "payload": row["payload"] if beside is None else beside[0],
        "channels": sorted((row["channels"] or "").split()),
        "gates": row["gates"] or "",
        "parked": row["parked"] or "",
        "cancel": bool(row["cancel"]),
        "joined": bool(row["joined"]),
        "put_back": row["put_back"] and msgspec.json.decode(row["put_back"], type=PutBack),
        "progress": row["progress"] if row["progress_epoch"] == row["epoch"] else None,
        "progress_text": row["progress_text"] if row["progress_epoch"] == row["epoch"] else "",
        "result": row["result"] if has_result else None,
        "result_dies": row["result_purge_at_ms"] if has_result else None,
        "errors": [
            msgspec.structs.replace(
                msgspec.json.decode(error["body"], type=ErrorInfo),
                at_ms=error["at_ms"],
                start=error["start"],
            )
            for error in errors
        ],
    }


def _successor(step: Step, row: Row, active: Row) -> Dump:
    """Return what runs after an active job; `tests.support.sqlite_check` holds it against that."""
    values = _job(step, row)
    return {
        **{name: values[name] for name in DUMPED if name != "due"},
        "due": row["next_due_ms"] or None,
        "channels": values["channels"],
        "update": active["next_update"],
    }


def _worker(row: Row) -> Dump:
    return {
        "lease_ms": row["lease_ms"],
        "since": row["registered_ms"] if row["info"] else 0,
        "at": row["beat_ms"],
        "info": row["info"],
        "count": -1 if row["is_condemned"] else row["beat"],
        "claim": row["claim"],
        "settle": row["settle"],
        "settled": [letter == "1" for letter in row["settled"]],
    }


def _calls(step: Step, queue: int) -> dict[str, dict[int, tuple[int, list[Verdict]]]]:
    calls: dict[str, dict[int, tuple[int, list[Verdict]]]] = {}
    sql = "SELECT * FROM calls WHERE queue = ? AND at_ms > ?"
    for row in rows(step.db, sql, queue, step.now_ms - CALLS_TTL_MS):
        answer = read_answer(row["answer"])
        calls.setdefault(row["client"], {})[row["slot"]] = (row["number"], answer)
    return calls


def others(step: Step, name: QueueName) -> list[tuple[Any, ...]]:
    """Return every row that is of other queues and other tenants."""
    db = step.db
    row = db.execute("SELECT key FROM queues WHERE tenant = ? AND name = ?", name).fetchone()
    key = row[0] if row else -1
    found: list[tuple[Any, ...]] = db.execute(
        "SELECT * FROM queues WHERE key <> ?", (key,)
    ).fetchall()
    for table in OF_A_QUEUE:
        sql = f"SELECT * FROM {table} WHERE queue <> ? ORDER BY 1, 2, 3"  # noqa: S608
        found += db.execute(sql, (key,)).fetchall()
    for table in ("payloads", "errors", "outputs"):
        sql = f"""
SELECT {table}.* FROM {table} JOIN jobs ON jobs.key = {table}.job WHERE queue <> ? ORDER BY 1
"""  # noqa: S608
        found += db.execute(sql, (key,)).fetchall()
    sql = "SELECT * FROM schedules WHERE tenant <> ? ORDER BY 1"
    return found + db.execute(sql, (name[0],)).fetchall()

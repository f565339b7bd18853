"""What ``headrace doctor`` says of a database."""

from __future__ import annotations

import sqlite3

from headrace.storage.sqlite.engine.database import filesystem
from headrace.storage.sqlite.engine.location import DatabaseLocation
from headrace.storage.sqlite.engine.step import Step
from headrace.storage.values import Finding

PROBLEMS_SHOWN = 5

_TENANTS = """
SELECT tenant FROM queues WHERE is_listed UNION SELECT tenant FROM schedules ORDER BY tenant
"""


def tenants(step: Step) -> list[str]:
    """Return the tenants that have a queue on their list, or a schedule."""
    return [tenant for (tenant,) in step.db.execute(_TENANTS)]


def diagnose(step: Step, place: DatabaseLocation) -> list[Finding]:
    """Look a database over: this reads all of it."""
    return [
        Finding("version", "ok", f"SQLite {sqlite3.sqlite_version}"),
        _persistence(place),
        *_disk(step, place),
        _integrity(step),
    ]


def _persistence(place: DatabaseLocation) -> Finding:
    if not place.is_file:
        return Finding("persistence", "warning", "none: the jobs end with this process")
    if place.is_full_sync:
        return Finding("persistence", "ok", "sync=full: no accepted job is lost")
    return Finding(
        "persistence",
        "ok",
        "sync=normal: a crash of the process loses nothing, a power loss the last commits",
    )


def _disk(step: Step, place: DatabaseLocation) -> list[Finding]:
    if not place.is_file:
        return []
    [pages] = step.db.execute("PRAGMA page_count").fetchone()
    [free] = step.db.execute("PRAGMA freelist_count").fetchone()
    [page_bytes] = step.db.execute("PRAGMA page_size").fetchone()
    kind = filesystem(place.path.parent) or "unknown"
    return [
        Finding(
            "disk",
            "ok",
            f"{place.path}: {pages * page_bytes:,} bytes, {free * page_bytes:,} of them free to "
            f"use again, on {kind}",
        )
    ]


def _integrity(step: Step) -> Finding:
    rows = step.db.execute(f"PRAGMA quick_check({PROBLEMS_SHOWN})").fetchall()
    problems = [text for (text,) in rows if text != "ok"]
    if problems:
        return Finding("integrity", "error", "; ".join(problems))
    return Finding("integrity", "ok", "every page and index can be read")

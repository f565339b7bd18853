"""What bulk writes have staged and left behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import redis

from headrace.clock import wall_clock
from headrace.storage.sqlite.engine.location import place_of

_KEPT = "SELECT count(*) FROM stages WHERE purge_at_ms IS NULL OR purge_at_ms > ?"


def stages_left(url: str) -> int:
    """Return how many stages there are in a storage, of all queues and writes."""
    if url.startswith("file://"):
        with closing(sqlite3.connect(place_of(url).path)) as database:
            [count] = database.execute(_KEPT, (wall_clock(),)).fetchone()
            return int(count)
    with closing(redis.Redis.from_url(url)) as client:
        return len(client.keys("hr:*:stage:*"))

"""Looks through all keys of a queue for jobs that have lost their place, and for what lost its job.

Only who asks for it does this: it reads the name of every key on the server, in bounded calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator

from headrace.storage.redis.calls import maintenance
from headrace.storage.redis.calls.doctor import time_us
from headrace.storage.redis.calls.maintenance import PAGE, RESTORED_A_CALL
from headrace.storage.redis.runner import Runner

OF_A_JOB = (b"job", b"payload", b"errors", b"result", b"output", b"next")
OF_A_LINE = (b"ready", b"ordered")


async def restore_lost(runner: Runner, root: str) -> int:
    """Give jobs their places back; return how many things were put right."""
    # What is queued before this moment has an entry that the walk sees, if it has one at all: its
    # line is there for as long. One that begins later may be passed over as keys are looked for.
    since_ms = await runner.run(time_us()) // 1000
    ids: set[bytes] = set()
    lists: list[bytes] = []
    async for key in _keys(runner, root):
        kind, _, name = key[len(root) + 1 :].partition(b":")
        if kind in OF_A_JOB:
            ids.add(name)
        elif kind in OF_A_LINE:
            lists.append(key)
    seen: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for key in lists:
        async for entry in _entries(runner, root, key):
            generation, _, job_id = entry.partition(b":")
            seen[job_id].append(generation)
    mended = 0
    known = sorted(ids)
    for first in range(0, len(known), RESTORED_A_CALL):
        some = known[first : first + RESTORED_A_CALL]
        page = [(job_id, b" ".join(seen[job_id])) for job_id in some]
        mended += await runner.run(maintenance.restore(root, since_ms, page))
    return mended


async def _keys(runner: Runner, root: str) -> AsyncIterator[bytes]:
    cursor = b"0"
    while True:
        cursor, keys = await runner.run(maintenance.keys_of(root, cursor))
        for key in keys:
            yield key
        if cursor == b"0":
            return


async def _entries(runner: Runner, root: str, key: bytes) -> AsyncIterator[bytes]:
    """Yield a line from its tail: what is taken from the head meanwhile hides no other entry."""
    offset = 0
    while True:
        page = await runner.run(maintenance.entries(root, key, offset))
        for entry in page:
            yield entry
        if len(page) < PAGE:
            return
        offset += PAGE

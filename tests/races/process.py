"""One of several processes whose hands race.

Run as ``python -m tests.races.process ASSIGNMENT``, which is JSON. It prints what it has to tell as
a line of JSON.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import anyio
import msgspec

from headrace.storage.base import Storage
from headrace.storage.redis.storage import RedisStorage
from headrace.storage.sqlite.storage import SqliteStorage
from tests.races.hands import Hand, Told
from tests.races.limited import LimitedHand
from tests.races.updating import UpdatingHand
from tests.support.until import until

TENANT = "acme"
HANDS = 3
MEETING_SECONDS = 60


class Assignment(msgspec.Struct, frozen=True):
    """What a process does: ``steps`` of each hand, once all processes have come."""

    kind: str
    url: str
    directory: str
    seed: int
    steps: int
    index: int
    of: int


HANDS_OF: dict[str, type[Hand]] = {"updates": UpdatingHand, "limits": LimitedHand}


def opened(url: str) -> Storage:
    """Return a storage of this process."""
    kind = RedisStorage if url.startswith("redis") else SqliteStorage
    return kind(url).for_tenant(TENANT)


def are_there(directory: Path, of: int) -> bool:
    return len(list(directory.glob("came-*"))) == of


async def race(own: Assignment) -> Told:
    """Let the hands race and return what they tell."""
    storage = opened(own.url)
    names = [f"p{own.index}h{n}" for n in range(HANDS)]
    make = HANDS_OF[own.kind]
    hands = [make(storage, name, f"{own.seed}/{name}") for name in names]
    directory = Path(own.directory)
    (directory / f"came-{own.index}").touch()
    await until(partial(are_there, directory, own.of), within=MEETING_SECONDS)
    async with anyio.create_task_group() as group:
        for hand in hands:
            group.start_soon(hand.run, own.steps)
    await storage.aclose()
    return Told(
        [hold for hand in hands for hold in hand.holds],
        dict(sum((hand.did for hand in hands), Counter())),
        [problem for hand in hands for problem in hand.problems],
        [job_id for hand in hands for job_id in hand.stored],
        [job_id for hand in hands for job_id in hand.purged],
    )


if __name__ == "__main__":
    told = asyncio.run(race(msgspec.json.decode(sys.argv[1], type=Assignment)))
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n")

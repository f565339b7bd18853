"""The server's instructions for a job: a count that a busy machine does not change.

    python -m benchmarks.instructions [--against CHECKOUT]

With ``--against`` the code of another checkout is counted too, and both stand side by side.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import uvloop

from benchmarks.bulk_instructions import BULK_GOALS, BulkCounts
from benchmarks.callgrind import Callgrind, CountingError, Meter
from benchmarks.growth.caller import Caller, calling
from benchmarks.growth.workload import GrowthLoad
from benchmarks.harness import Figure, Goal, shown
from benchmarks.report import table
from headrace.job import Job
from headrace.storage.limits import BATCH_LIMIT
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[1]
VERBS = ("enqueue", "claim", "settle")
BATCH = 100
ROUNDS, BATCHES = 12, 6
ROUNDS_ALONE, ALONE = 25, 20
"""Rounds of few calls, so that no job waits for long: the server's function remembers what it has
worked out for a wait, up to 10 s, and a job alone waits for milliseconds."""
ROUNDS_STAGED = 50
"""As many as the server makes calls between two pieces of collecting garbage. A round has a number
of calls that does not divide this, else the same verb would have all of the pieces."""
QUIET = (
    *("--hz", "1"),
    *("--activerehashing", "no"),
    *("--busy-reply-threshold", "0"),
)
"""What the server does by the clock and not for a job is kept small; the rest is subtracted."""
TOGETHER, IDLE = f"a job, batches of {BATCH}", "a job alone, idle queue"
STAGED = f"a job, staged and published, batches of {BATCH_LIMIT}"
GOALS = {TOGETHER: Goal(120_000), IDLE: Goal(500_000), STAGED: Goal(29_000), **BULK_GOALS}


class Counted:
    """A server whose instructions are counted, and what calls it."""

    def __init__(self, server: RedisServer, meter: Meter) -> None:
        self._load = GrowthLoad(server.url)
        self._meter = meter

    async def run(self) -> dict[str, float]:
        """Return the instructions a job, by the name of what was called."""
        async with self._load.app, calling(self._load) as caller:
            await caller.run(ROUNDS * BATCHES * BATCH // 2)
            await self._one_by_one(caller)
            await self._meter.calibrate()
            together = await self._by_verb(caller, ROUNDS, BATCHES, BATCH)
            alone = await self._by_verb(caller, ROUNDS_ALONE, ALONE, 1)
            self._meter.begin()
            await self._one_by_one(caller)
            idle = self._meter.end() / (ROUNDS_ALONE * ALONE)
            staged = await self._staged(caller) if caller.has_bulk_writes else {}
        return {
            TOGETHER: sum(together.values()),
            **together,
            IDLE: idle,
            **{f"{verb} alone": count for verb, count in alone.items()},
            **staged,
        }

    async def _by_verb(
        self, caller: Caller, rounds: int, batches: int, size: int
    ) -> dict[str, float]:
        """Return what each verb takes for a job, in so many batches of this size a round."""
        totals = dict.fromkeys(VERBS, 0.0)
        self._meter.begin()
        for _ in range(rounds):
            for _ in range(batches):
                await caller.enqueue(self._jobs(size))
            totals["enqueue"] += self._meter.end()
            claimed = [await caller.claim(size) for _ in range(batches)]
            totals["claim"] += self._meter.end()
            for jobs in claimed:
                await caller.settle(jobs)
            totals["settle"] += self._meter.end()
        return {verb: total / (rounds * batches * size) for verb, total in totals.items()}

    async def _staged(self, caller: Caller) -> dict[str, float]:
        """Return what a staged write takes for a job, of which each is one batch."""
        totals = {"stage and commit": 0.0, "publish": 0.0}
        for _ in range(ROUNDS_STAGED):
            self._meter.begin()
            await caller.stage(self._jobs(BATCH_LIMIT))
            totals["stage and commit"] += self._meter.end()
            await caller.publish()
            totals["publish"] += self._meter.end()
            await caller.settle(await caller.claim(BATCH_LIMIT))
            for _ in range(2):
                await caller.claim(0)
        counts = {name: total / (ROUNDS_STAGED * BATCH_LIMIT) for name, total in totals.items()}
        return {STAGED: sum(counts.values()), **counts}

    async def _one_by_one(self, caller: Caller) -> None:
        for _ in range(ROUNDS_ALONE * ALONE):
            await caller.enqueue(self._jobs(1))
            await caller.settle(await caller.claim(1))

    def _jobs(self, size: int) -> list[Job]:
        return [self._load.noop.job(x=n) for n in range(size)]


async def count() -> dict[str, float]:
    """Return the instructions a job: they come out alike each time, to about 0.1 %."""
    with TemporaryDirectory(prefix="headrace-callgrind-") as directory:
        callgrind = Callgrind(Path(directory))
        with RedisServer(*QUIET, under=callgrind.command) as server:
            with server.client() as client:
                # A slow run would otherwise count more of the keys that expire meanwhile.
                client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            meter = Meter(callgrind, server.pid)
            together = await Counted(server, meter).run()
            return {**together, **await BulkCounts(server, meter).run()}


async def measure() -> list[Figure]:
    """Count each verb, in batches and alone."""
    counts = await count()
    return [
        Figure(f"Redis, {name}", "instr.", [value], GOALS.get(name))
        for name, value in counts.items()
    ]


def counts_of(checkout: Path) -> dict[str, float]:
    """Return the counts of another checkout's code, called by this one's benchmarks.

    Raises:
        CountingError: there is no such code, or it can't be counted.
    """
    source = checkout.resolve() / "src"
    if not (source / "headrace").is_dir():
        raise CountingError(f"{checkout} is no checkout of headrace: it has no src/headrace")
    # It comes before the installed package, and finds its own Lua sources.
    environment = {**os.environ, "PYTHONPATH": str(source)}
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.instructions", "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    if child.returncode:
        raise CountingError(f"the counts of {checkout} failed: see above")
    return msgspec.json.decode(child.stdout, type=dict[str, float])


def compared(before: dict[str, float], after: dict[str, float]) -> str:
    """Return a table of two counts and the change from the first to the second."""
    rows = [
        [name, shown(before[name]), shown(value), f"{(value / before[name] - 1) * 100:+.2f} %"]
        if name in before
        else [name, "", shown(value), ""]
        for name, value in after.items()
    ]
    return table(["instructions a job", "before", "now", "change"], rows)


def main() -> int:
    """Print the counts, beside those of another checkout if there is one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="the code of before")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    options = parser.parse_args()
    try:
        before = counts_of(options.against) if options.against else None
        now = uvloop.run(count())
    except CountingError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(msgspec.json.encode(now).decode())
    elif before is None:
        print(table(["", "instructions a job"], [[name, shown(now[name])] for name in now]))
    else:
        print(compared(before, now))
    return 0


if __name__ == "__main__":
    sys.exit(main())

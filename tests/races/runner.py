"""Lets processes race, and gathers what they tell."""

from __future__ import annotations

import os
import secrets
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import msgspec

from tests.races.hands import Told
from tests.races.process import Assignment
from tests.support.processes import WorkerProcess

SEED = int(os.environ.get("HEADRACE_SEED") or secrets.randbits(32))
PROCESSES = 3


async def raced(kind: str, url: str, directory: Path, steps: int) -> Told:
    """Let processes race, and return what all of them tell."""
    sys.stdout.write(f"HEADRACE_SEED={SEED}\n")
    assignments = [
        Assignment(kind, url, str(directory), SEED, steps, index, PROCESSES)
        for index in range(PROCESSES)
    ]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                WorkerProcess.module(
                    "tests.races.process",
                    msgspec.json.encode(own).decode(),
                    directory=directory,
                    name=f"process-{own.index}",
                )
            )
            for own in assignments
        ]
        for process in processes:
            assert await process.wait(30 + steps / 10) == 0, process.stderr
        told = [msgspec.json.decode(process.stdout, type=Told) for process in processes]
    return Told(
        [hold for one in told for hold in one.holds],
        dict(sum((Counter(one.did) for one in told), Counter())),
        [problem for one in told for problem in one.problems],
        [job_id for one in told for job_id in one.stored],
        [job_id for one in told for job_id in one.purged],
    )

"""The server's instructions for a row that Spark writes: a busy machine does not change them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.callgrind import Callgrind
from benchmarks.growth.points import Place, Values
from benchmarks.harness import Goal
from benchmarks.instructions import QUIET
from benchmarks.spark.frames import jobs
from benchmarks.spark.parts import Part
from benchmarks.spark.stand import Stand
from benchmarks.spark.writes import COMMITS, write
from tests.support.redis_server import RedisServer

INSTRUCTIONS = "instructions a row"
PAYLOADS = (9, 85)
FEW, MANY = 2_000, 6_000
"""Rows, in full calls of the storage; what a write costs by itself is in both, and goes."""
LINES = {commit: f"{commit}, {{}} B" for commit in COMMITS}
GOALS: dict[Place, Goal] = {
    (LINES["direct"], PAYLOADS[0]): Goal(24_000),
    (LINES["atomic"], PAYLOADS[0]): Goal(29_000),
}


def count(commit: str, payload: int, stand: Stand) -> Values:
    """Write few rows and more to a server whose instructions are counted."""
    with TemporaryDirectory(prefix="headrace-callgrind-") as directory:
        callgrind = Callgrind(Path(directory))
        with RedisServer(*QUIET, under=callgrind.command) as server:
            counted = Stand(stand.spark, server, Path(directory), rows=stand.rows)

            def instructions(rows: int) -> int:
                frame = jobs(stand.spark, rows, payload=payload)
                callgrind.count(server.pid)
                write(commit, counted, rows=frame, count=rows)
                return callgrind.count(server.pid)

            instructions(FEW)
            return {INSTRUCTIONS: (instructions(MANY) - instructions(FEW)) / (MANY - FEW)}


PART = Part(
    "The server's instructions a row",
    {
        (line, payload): partial(count, commit, payload)
        for commit, line in LINES.items()
        for payload in PAYLOADS
    },
    goals=GOALS,
    main=INSTRUCTIONS,
    rounds=1,
)

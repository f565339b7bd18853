"""Runs the machine for hours, with another seed in each round, and says what a round did.

`make soak-model` starts it. It ends at the first difference, with the steps that lead to it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.model.run import run_machine
from tests.model.subjects import ModelSubject, RedisSubject, SqliteSubject
from tests.support.redis_server import RedisServer

KINDS = ("redis", "memory", "file", "restarted")
"""The last one is a server that is killed and started again where the others only reconnect."""
RESTARTED_SHARE = 10
"""A round restarts a server in one of so many of its examples."""


@contextmanager
def opened(kind: str) -> Iterator[Callable[[], ModelSubject]]:
    """Yield what opens an empty storage of a kind."""
    if kind in ("memory", "file"):
        yield lambda: SqliteSubject(kind)
        return
    with RedisServer(appendonly=kind == "restarted") as server:

        def restart() -> None:
            server.kill()
            server.start()

        yield lambda: RedisSubject(server.url, restart=restart if kind == "restarted" else None)


def run_round(kind: str, seed: int, hits: Counter[str], *, examples: int, steps: int) -> None:
    """Run one seed on one kind of storage, and print how to run it again."""
    started_at = time.monotonic()
    size = f"--rounds 1 --kinds {kind} --examples {examples} --steps {steps}"
    say(f"seed {seed} on {kind}; again: make soak-model SEED={seed} ARGS='{size}'")
    share = RESTARTED_SHARE if kind == "restarted" else 1
    with opened(kind) as make:
        run_machine(make, hits, examples=max(1, examples // share), steps=steps, seed=seed)
    say(f"seed {seed} on {kind}: no difference in {time.monotonic() - started_at:.0f} s")


def say(line: str) -> None:
    """Print at once, for who watches a log."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run rounds until the time is over."""
    parser = argparse.ArgumentParser(prog="make soak-model", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="start no round after that")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="at most so many")
    parser.add_argument("--examples", type=int, default=200, help="a round and storage")
    parser.add_argument("--steps", type=int, default=100, help="most rules in an example")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    given = parser.parse_args()
    ends_at = time.monotonic() + given.seconds
    hits: Counter[str] = Counter()
    seed = given.seed
    while seed < given.seed + given.rounds and time.monotonic() < ends_at:
        for kind in given.kinds:
            run_round(kind, seed, hits, examples=given.examples, steps=given.steps)
        seed += 1
    say(f"{seed - given.seed} rounds without a difference; what they did:")
    for what, n in sorted(hits.items()):
        say(f"{n:10,}  {what}")


if __name__ == "__main__":
    main()

"""Starts a process on a directory again and again, kills it at a random moment, and looks.

Run as ``python -m tests.apps.kill_loop DIRECTORY KILLS SEED``. The child enqueues, claims, settles,
fires the next occurrence of a schedule, whose instants are its versions, and so on, and notes each
id once the storage has answered. It is forked, since a new interpreter for each kill would take
most of the time; the parent has no thread and no open database then. The last line of the output
says how many ids were noted; a database that is not in order ends it early.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

from headrace.storage.sqlite.engine.location import place_of
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.schedule_steps import a_schedule, an_occurrence, fire, read, write
from headrace.testing.contract.steps import ContractClient, ContractIncarnation, a_job, completed

JOBS_A_ROUND = 5
MOST_NOTES = 15
LONGEST_S = 0.005
POLL_S = 0.0005
SCHEDULE = "tick"


async def work(url: str, name: str, notes: int) -> None:
    """Enqueue some jobs, settle some that are there, and begin again."""
    storage = SqliteStorage(url).for_tenant("acme")
    client = ContractClient(storage, f"client-{name}")
    worker = await ContractIncarnation(storage, f"worker-{name}").register()
    number = 0
    while True:
        ids = [f"{name}-{number + at}" for at in range(JOBS_A_ROUND)]
        number += JOBS_A_ROUND
        await client.enqueue(*map(a_job, ids))
        os.write(notes, "".join(f"accepted {job_id}\n" for job_id in ids).encode())
        for job in await worker.claim(JOBS_A_ROUND):
            assert await worker.settle(job, completed())
            os.write(notes, f"settled {job.id}\n".encode())
        await tick(storage, notes)


async def tick(storage: SqliteStorage, notes: int) -> None:
    """Fire the next occurrence, which the child before may have done, and move the schedule on."""
    schedule = await read(storage, SCHEDULE)
    version = schedule.version if schedule else 0
    occurrence = an_occurrence(version + 1, SCHEDULE)
    assert await fire(storage, occurrence) is not None
    os.write(notes, f"accepted {occurrence.job.id}\n".encode())
    assert await write(storage, a_schedule(SCHEDULE, expected=version)) == [version + 1]
    os.write(notes, f"moved {version + 1}\n".encode())


def noted(path: Path, word: str) -> set[str]:
    """Return the ids that were noted after a word."""
    # Of a write that crosses a page a reader may see the first half.
    lines = [line.split(" ") for line in path.read_text().split("\n")[:-1]]
    return {job_id for said, job_id in lines if said == word}


def kill_one(url: str, name: str, path: Path, rng: random.Random) -> None:
    """Start a child, and kill it after some of its notes, at any moment of the next 5 ms."""
    notes = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    before = path.stat().st_size
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work(url, name, notes))
        finally:
            os._exit(1)
    enough = rng.randint(JOBS_A_ROUND, MOST_NOTES)
    with path.open("rb") as written:
        while True:
            written.seek(before)
            if written.read().count(b"\n") >= enough:
                break
            time.sleep(POLL_S)
    time.sleep(rng.uniform(0, LONGEST_S))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child {name} ended by itself"
    os.close(notes)


def look(database: Path, path: Path) -> None:
    """See that the database is in order and holds all that was noted."""
    connection = sqlite3.connect(database)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        states = dict(connection.execute("SELECT id, state FROM jobs").fetchall())
        [last] = connection.execute("SELECT max(instant_ms) FROM fired").fetchone()
        [version] = connection.execute("SELECT max(version) FROM schedules").fetchone()
    finally:
        connection.close()
    assert noted(path, "accepted") <= states.keys(), "accepted and lost"
    settled = noted(path, "settled")
    assert {states[job_id] for job_id in settled} <= {"completed"}, "settled and lost"
    fired = {job_id for job_id in states if job_id.startswith(SCHEDULE)}
    assert fired == {f"{SCHEDULE}:{n + 1}" for n in range(last or 0)}, "fired without a job or mark"
    assert max(map(int, noted(path, "moved")), default=0) <= (version or 0), "moved and lost"
    assert (last or 0) - (version or 0) in (0, 1), "moved and not fired, or fired too far"


def main() -> None:
    """Kill as often as was asked."""
    directory, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    url = f"file://{directory}/data"
    notes = directory / "notes"
    rng = random.Random(seed)
    for number in range(kills):
        kill_one(url, str(number), notes, rng)
        look(place_of(url).path, notes)
    sys.stdout.write(f"{len(noted(notes, 'accepted'))} {len(noted(notes, 'settled'))}\n")


if __name__ == "__main__":
    main()

"""A child that dies is charged to the job that it ran, and to nothing else."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from headrace import Task
from headrace.events import ProcessEnded
from headrace.outcome import Completed, Retried, Stalled
from headrace.worker.attempt import StopReason
from tests.apps import process_app as handlers
from tests.support.processes import is_alive
from tests.support.until import patience, until
from tests.worker.slots import Crew, Run, children, claimed, crew_of


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("exit", "the process ended with status 3 while it ran the job"),
        ("kill", "the process was killed by SIGKILL while it ran the job"),
        ("segfault", "the process was killed by SIGSEGV while it ran the job"),
        ("abort", "the process was killed by SIGABRT while it ran the job"),
    ],
)
async def test_a_death_stalls_the_job_that_ran_and_says_how_it_came(how: str, text: str) -> None:
    # BC-78, RELIABILITY §3 38 and 41.
    async with crew_of(handlers.app) as crew:
        outcome = await crew.run(claimed(handlers.die, {"how": how}))
        assert isinstance(outcome, Stalled)
        assert outcome.error.message == text
        ended = await crew.log.wait(ProcessEnded)
        assert (ended[0].cause, ended[0].jobs) == (text.removesuffix(" while it ran the job"), 1)
        assert await crew.run(claimed(handlers.add, {"a": 1})) is not None


async def test_a_child_that_cuts_its_own_connection_is_ended(tmp_path: Path) -> None:
    async with crew_of(handlers.app) as crew:
        outcome = await crew.run(claimed(handlers.die, {"how": "close"}))
        assert isinstance(outcome, Stalled)
        assert await (await crew.start(claimed(handlers.add, {"a": 1}))).result() == b"3"


async def test_a_death_in_the_midst_of_an_answer_hangs_nothing() -> None:
    # An executor of the standard library waits for the rest for ever.
    async with crew_of(handlers.app) as crew:
        await crew.full()
        (process,) = children()
        run = await crew.start(claimed(handlers.die_while_answering, {"size": 1_000_000}))
        await asyncio.sleep(0)
        # The loop reads nothing meanwhile, so that the answer can't be sent to its end.
        while is_alive(process):
            pass
        assert isinstance(await run.outcome(), Stalled)
        assert await (await crew.start(claimed(handlers.add, {"a": 1}))).result() == b"3"


async def test_a_death_before_a_large_payload_was_read_hangs_nothing() -> None:
    async with crew_of(handlers.app) as crew:
        await crew.full()
        (process,) = children()
        process.suspend()
        run = await crew.start(claimed(handlers.fail, {"text": "x" * 1_000_000}))
        await asyncio.sleep(0)
        process.kill()
        # It had not begun, so that the job runs in the next one as if nothing had been.
        assert isinstance(await run.outcome(), Retried)


async def test_a_hundred_jobs_behind_a_death_run_and_neighbours_are_not_disturbed(
    tmp_path: Path,
) -> None:
    """BC-78: only the guilty job is charged."""
    async with crew_of(handlers.app, slots=2) as crew:
        go, here = tmp_path / "go", tmp_path / "here"
        neighbour = await crew.start(claimed(handlers.wait_for, {"path": str(here), "go": str(go)}))
        await until(here.exists, within=20)
        for how in ("kill", "exit"):
            assert isinstance(await crew.run(claimed(handlers.die, {"how": how})), Stalled)
            died_at = time.monotonic()
            await until(lambda: crew.offers, within=20, what="the slot is back")
            assert time.monotonic() - died_at < patience(10), (
                "2 seconds on a machine that does nothing else"
            )
        for number in range(100):
            run = await crew.start(claimed(handlers.add, {"a": number}))
            assert await run.result() == str(number + 2).encode()
        assert not neighbour.outcomes
        go.touch()
        assert await neighbour.result() == here.read_text().encode()
        assert len(crew.log.of(ProcessEnded)) == 2


async def test_a_job_that_kills_every_process_is_charged_each_time_and_holds_up_no_slot() -> None:
    # RELIABILITY §3 44: replacing what jobs have killed takes no growing pause.
    async with crew_of(handlers.app) as crew:
        began_at = time.monotonic()
        for _ in range(8):
            assert isinstance(await crew.run(claimed(handlers.die, {"how": "exit"})), Stalled)
        assert time.monotonic() - began_at < patience(60)


async def test_an_idle_child_that_is_killed_is_replaced_and_no_job_is_charged() -> None:
    async with crew_of(handlers.app) as crew:
        for _ in range(3):
            await crew.full()
            (process,) = children()
            process.kill()
            # Claimed for the slot before anybody has noticed.
            run = await crew.start(claimed(handlers.add, {"a": 1}))
            assert await run.result() == b"3"
        ended = crew.log.of(ProcessEnded)
        assert [event.cause for event in ended] == ["the process was killed by SIGKILL"] * 3
        await crew.full()


async def test_what_a_handler_took_of_the_memory_ends_with_an_error_of_its_own() -> None:
    async with crew_of(handlers.app, memory_limit_bytes=700 << 20) as crew:
        for _ in range(3):
            outcome = await crew.run(claimed(handlers.hoard))
            assert isinstance(outcome, Retried), outcome
            assert outcome.error.type == "MemoryError"
        assert await (await crew.start(claimed(handlers.add, {"a": 1}))).result() == b"3"
        assert crew.log.events == []


# The books


class Storm:
    """Random jobs, ends and deaths; what must hold of the offers however they meet."""

    def __init__(self, crew: Crew, seed: int) -> None:
        self.crew = crew
        self.random = random.Random(seed)
        self.runs: list[tuple[Run, Task[..., Any]]] = []
        self.stopped: set[Run] = set()

    def begin(self, *, is_offered: bool) -> None:
        if is_offered and not self.crew.offers:
            return
        choices: list[tuple[Task[..., Any], dict[str, object]]] = [
            (handlers.add, {"a": 1}),
            (handlers.nap, {"ms": self.random.randrange(30)}),
            (handlers.write, {"size": 300_000}),
            (handlers.fail, {"text": "no"}),
            (handlers.die, {"how": self.random.choice(["exit", "kill"])}),
        ]
        task, arguments = self.random.choice(choices)
        job = claimed(task, arguments)
        start = self.crew.start_now if is_offered else self.crew.start_unoffered
        self.runs.append((start(job), task))

    def stop_one(self) -> None:
        active = [run for run, _ in self.runs if not run.outcomes]
        if active:
            run = self.random.choice(active)
            self.stopped.add(run)
            run.attempt.stop(self.random.choice(list(StopReason)))

    def kill_one(self) -> None:
        found = children()
        if found:
            self.random.choice(found).send_signal(signal.SIGKILL)

    async def step(self) -> None:
        self.random.choices(
            [
                lambda: self.begin(is_offered=True),
                lambda: self.begin(is_offered=False),
                self.stop_one,
                self.kill_one,
            ],
            weights=[10, 3, 4, 1],
        )[0]()
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        if self.random.random() < 0.2:
            await until(lambda: self.crew.offers, within=30, what="a slot is offered")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_whatever_happens_every_slot_is_offered_once_at_the_end(seed: int) -> None:
    """G1 in small: no offer is lost, and no slot is offered twice."""
    async with crew_of(handlers.app, slots=3) as crew:
        storm = Storm(crew, seed)
        await crew.full()
        for _ in range(100):
            await storm.step()
            assert 0 <= crew.offers <= crew.slots
        for run, task in storm.runs:
            outcome = await run.outcome(within=60)
            if run not in storm.stopped and task is handlers.add:
                # Killed by the storm, perhaps, but then it is charged once and not lost.
                assert isinstance(outcome, Completed | Stalled)
        await crew.full()
        with anyio.fail_after(patience(60)):
            for _ in range(2 * crew.slots):  # each is there to be used
                runs = [await crew.start(claimed(handlers.add, {"a": 1})) for _ in range(3)]
                assert [await run.result() for run in runs] == [b"3"] * 3
        await crew.full()
        assert len(children()) == crew.slots


async def test_nothing_of_a_child_is_left_open() -> None:
    async def rounds(count: int) -> None:
        async with crew_of(handlers.app) as crew:
            for _ in range(count):
                await crew.run(claimed(handlers.die, {"how": "exit"}))
            await crew.full()

    await rounds(1)
    me = psutil.Process()
    before = (me.num_fds(), me.num_threads())
    await rounds(4)

    # The executors' own threads see the end a moment later.
    def is_nothing_left() -> bool:
        gc.collect()  # an executor refers to itself
        return (me.num_fds(), me.num_threads()) <= before

    await until(is_nothing_left)
    assert os.getpid() not in {child.pid for child in children()}

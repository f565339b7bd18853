"""An executor with process slots and threads but without a storage, for tests that run handlers."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import psutil

from headrace import App, Task
from headrace.job import PROCESS_LANE, Claim, ClaimedJob
from headrace.json_codec import JSON
from headrace.outcome import Completed, Outcome
from headrace.testing import EventLog
from headrace.worker.attempt import Attempt, Follower
from headrace.worker.execute import UNWIND_S, Executor
from headrace.worker.limits import Wear, process_functions
from headrace.worker.process_slots.child import ChildSettings
from headrace.worker.process_slots.functions import Function
from headrace.worker.process_slots.processes import Processes
from headrace.worker.slots import Slot
from headrace.worker.threads import Threads
from tests.support.until import patience, until

WITHIN_S = 20.0


def claimed(
    task: Task[..., Any],
    arguments: dict[str, object] | None = None,
    *,
    job_id: str = "x",
    payload: bytes | None = None,
    failures: int = 0,
    options: bytes = b"",
) -> ClaimedJob:
    """Return a job of a task, as a claim brings it."""
    return ClaimedJob(
        id=job_id,
        queue="cpu",
        task=task.name,
        payload=msgspec.json.encode(arguments or {}) if payload is None else payload,
        claim=Claim(failures + 1, "incarnation/nonce"),
        failures=failures,
        stalls=0,
        created_ms=1_700_000_000_000,
        waited_ms=0,
        options=options,
    )


class Run:
    """An attempt that was started, and what it came to."""

    def __init__(
        self,
        executor: Executor,
        job: ClaimedJob,
        *,
        slot: Slot | None = None,
        follower: Follower | None = None,
    ) -> None:
        self.outcomes: list[Outcome | None] = []
        self._ended = asyncio.Event()
        self.attempt = executor.start(job, self._done, slot=slot, follower=follower)

    def _done(self, attempt: Attempt, outcome: Outcome | None) -> None:
        attempt.slot.release()
        self.outcomes.append(outcome)
        self._ended.set()

    async def outcome(self, *, within: float = WITHIN_S) -> Outcome | None:
        """Wait for the outcome, of which there must be one only."""
        with anyio.fail_after(patience(within)):
            await self._ended.wait()
        assert len(self.outcomes) == 1
        return self.outcomes[0]

    async def result(self) -> bytes:
        """Wait for the result of one that completes."""
        outcome = await self.outcome()
        assert isinstance(outcome, Completed), outcome
        return outcome.result


class Crew:
    """Process slots and threads of an app; `offers` counts the slots that can be claimed for."""

    def __init__(
        self,
        app: App[Any],
        *,
        slots: int = 1,
        wear: Wear | None = None,
        memory_limit_bytes: int = 0,
        functions: Mapping[str, Function] | None = None,
        threads: int = 8,
        unwind_s: float = UNWIND_S,
        state: object = None,
    ) -> None:
        self.slots = slots
        self.offers = 0
        self.log = EventLog()
        self.serving: asyncio.Task[None] | None = None
        self.threads = Threads(threads)
        self.processes = Processes(
            slots,
            process_functions(app) if functions is None else functions,
            settings=ChildSettings(
                parent=os.getpid(), codec=pickle.dumps(JSON), memory_limit_bytes=memory_limit_bytes
            ),
            wear=wear or Wear(),
            offer=self._offer,
            emit=self.log,
        )
        self.executor = Executor(
            app.tasks,
            middleware=app.middlewares,
            state=state,
            emit=self.log,
            threads=self.threads,
            processes=self.processes,
            unwind_s=unwind_s,
        )

    def _offer(self) -> None:
        self.offers += 1

    async def start(self, job: ClaimedJob, *, follower: Follower | None = None) -> Run:
        """Start an attempt in a slot that was offered, as a worker does."""
        await until(lambda: self.offers, within=WITHIN_S, what="a slot is offered")
        return self.start_now(job, follower=follower)

    def start_now(
        self, job: ClaimedJob, *, follower: Follower | None = None, executor: Executor | None = None
    ) -> Run:
        """Start an attempt in a slot that is offered."""
        assert self.offers > 0
        self.offers -= 1
        return Run(
            executor or self.executor,
            job,
            slot=Slot(PROCESS_LANE, self._offer),  # of one that is stopped before it has a process
            follower=follower,
        )

    def start_unoffered(self, job: ClaimedJob) -> Run:
        """Start an attempt that was claimed for a slot of another lane."""
        return Run(self.executor, job)

    async def run(self, job: ClaimedJob) -> Outcome | None:
        """Run an attempt to its end."""
        return await (await self.start(job)).outcome()

    async def full(self, *, but: int = 0) -> None:
        """Wait until every slot but so many is offered, and no more than these."""
        await until(lambda: self.offers == self.slots - but, within=WITHIN_S, what="all offered")


@asynccontextmanager
async def crew_of(app: App[Any], **settings: Any) -> AsyncIterator[Crew]:
    """A crew that serves while the block runs, and of which nothing is left after it."""
    before = children()
    crew = Crew(app, **settings)
    crew.serving = asyncio.create_task(crew.processes.serve())
    try:
        yield crew
    finally:
        crew.processes.close()
        await crew.serving
        crew.threads.close()
        assert [child for child in children() if child not in before] == []


def children(pid: int | None = None) -> list[psutil.Process]:
    """Return the processes of slots, those included that nobody has waited for."""
    found = []
    for process in psutil.Process(pid).children():
        try:
            is_zombie = process.status() == psutil.STATUS_ZOMBIE
            if is_zombie or any("spawn_main" in word for word in process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found

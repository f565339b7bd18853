"""Faults of processes: deaths, rolling restarts, and standing still."""

from __future__ import annotations

from tests.chaos.settings import LEASE_S, LEAVES_S
from tests.chaos.strike import Fault, Strike, stopped_outside, suspend
from tests.crash.crew import passed
from tests.support.until import until

WRITING_TRIES = 100


async def kill_worker(strike: Strike) -> None:
    """SIGKILL to a worker, idle or in the middle of handlers."""
    process = strike.worker(is_supervisor=False).process
    strike.on_process(process)
    process.kill()


async def kill_several(strike: Strike) -> None:
    """SIGKILL to every worker but the supervised, at one moment."""
    for worker in strike.site.crew.workers:
        if worker.name != "pair":
            strike.on_process(worker.process)
            worker.process.kill()


async def kill_supervised(strike: Strike) -> None:
    """SIGKILL to a worker that has a supervisor."""
    pair = strike.worker(is_supervisor=True)
    for victim in pair.supervised()[:1]:
        strike.on_process(pair.process, victim.pid)
        victim.kill()


async def kill_supervisor(strike: Strike) -> None:
    """SIGKILL to a supervisor: its workers end, and another one comes."""
    process = strike.worker(is_supervisor=True).process
    strike.on_process(process)
    process.kill()


async def kill_slot(strike: Strike) -> None:
    """SIGKILL to a process of a slot, as the kernel does when memory is short."""
    workers = [w for w in strike.site.crew.workers if w.slots()]
    for worker in workers[:1]:
        victim = strike.random.choice(worker.slots())
        strike.on_process(worker.process, victim.pid)
        victim.kill()


async def restart_worker(strike: Strike) -> None:
    """SIGTERM to a worker or supervisor, and a new one after its end."""
    worker = strike.worker()
    process = worker.ask()
    strike.on_process(process)
    await until(
        lambda: process.returncode is not None, within=LEAVES_S, what=f"{process.label} has ended"
    )


async def pause_briefly(strike: Strike) -> None:
    """SIGSTOP to a worker for half a lease."""
    await _pause(strike, LEASE_S / 2)


async def pause_long(strike: Strike) -> None:
    """SIGSTOP to a worker for longer than its lease, so that others are given its jobs."""
    await _pause(strike, LEASE_S * strike.random.uniform(1.6, 2.2))


async def _pause(strike: Strike, seconds: float) -> None:
    process = strike.worker(is_supervisor=False).process
    strike.on_process(process)
    await suspend(process)
    await passed(seconds)
    process.cont()


async def kill_producer(strike: Strike) -> None:
    """SIGKILL to a producer; another one sends the rest."""
    process = strike.producer().process
    strike.on_process(process)
    process.kill()


async def kill_reader(strike: Strike) -> None:
    """SIGKILL to who archives and reads; another one goes on."""
    process = strike.reader().process
    strike.on_process(process)
    process.kill()


async def kill_writing(strike: Strike) -> None:
    """SIGKILL to a worker in the middle of a commit, or at least of something."""
    process = strike.worker(is_supervisor=False).process
    strike.on_process(process)
    for _ in range(WRITING_TRIES):
        if not await stopped_outside(process):
            break
        process.cont()
        await passed(strike.random.uniform(0, 0.005))
    process.kill()


PROCESS_FAULTS = (
    Fault("kill-worker", kill_worker),
    Fault("kill-several", kill_several),
    Fault("kill-supervised", kill_supervised),
    Fault("kill-supervisor", kill_supervisor),
    Fault("kill-slot", kill_slot),
    Fault("restart-worker", restart_worker),
    Fault("pause-briefly", pause_briefly),
    Fault("pause-long", pause_long),
    Fault("kill-producer", kill_producer),
    Fault("kill-reader", kill_reader),
    Fault("kill-writing", kill_writing, ("file",)),
)

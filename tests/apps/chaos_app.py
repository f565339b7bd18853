"""The app of the chaos soak: its handlers do what the plan of their job says, and note it.

The environment says who runs: ``CHAOS_DIRECTORY`` (where the notes are), ``CHAOS_NAME``, and
``CHAOS_MUTANT``, a storage that is wrong on purpose.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from headrace import App, CallNext, Context, FailPermanently
from headrace.storage import Storage
from tests.chaos.errors import odd_error
from tests.chaos.mutants import open_mutant
from tests.chaos.notes import Notes
from tests.chaos.plan import UNLIMITED, Kind, answer, kind_of, number_of, plan_of

TENANT = "chaos"
LOOK_S = 0.01

name = os.environ.get("CHAOS_NAME", "")
notes = Notes(Path(os.environ.get("CHAOS_DIRECTORY", os.devnull)))


class ChaosApp(App[None]):
    """An app whose storage may be a mutant."""

    def _open_storage(self) -> Storage:
        if mutant := os.environ.get("CHAOS_MUTANT"):
            return open_mutant(mutant, self.url, tenant=self.tenant)
        return super()._open_storage()


app = ChaosApp(tenant=TENANT, retry_for=float(os.environ.get("CHAOS_RETRY_FOR", "10")))


@app.middleware
async def note(context: Context[None], call_next: CallNext) -> Any:
    """Write down the start, and how the handler was left."""

    def write(word: str) -> None:
        notes.run(word, context.job_id, context.claim, name, os.getpid())

    write("start")
    try:
        result = await call_next()
    except BaseException:
        write("cut")
        raise
    write("end")
    return result


def begin(label: str, context: Context[None]) -> float:
    """Do what the plan says, and return for how many seconds to go on."""
    plan = plan_of(label)
    match kind_of(label):
        case Kind.PERMANENT:
            raise FailPermanently(label)
        case Kind.ODD:
            raise odd_error(number_of(label))
        case Kind.CRASH | Kind.POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        case Kind.HANG:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(plan.seconds)
    if context.failures < plan.raises:
        raise ValueError(label)
    return plan.seconds


@app.task(name="plain")
async def plain(label: str, padding: str = "") -> str:
    """Return at once."""
    return answer(label)


@app.task(name="coroutine", max_stalls=UNLIMITED)
async def coroutine(context: Context[None], label: str) -> str:
    """Follow the plan in the event loop."""
    await asyncio.sleep(begin(label, context))
    return answer(label)


@app.task(name="thread", max_stalls=UNLIMITED)
def thread(context: Context[None], label: str) -> str:
    """Follow the plan in a thread."""
    return go_on(label, context)


@app.task(name="process", max_stalls=UNLIMITED, executor="process")
def process(context: Context[None], label: str) -> str:
    """Follow the plan in a process."""
    return go_on(label, context)


def go_on(label: str, context: Context[None]) -> str:
    """Follow the plan, and return early, with a part of the answer, when asked to stop."""
    ends_at = time.monotonic() + begin(label, context)
    while time.monotonic() < ends_at:
        if context.cancelled():
            return answer(label)[:1]
        time.sleep(LOOK_S)
    return answer(label)

"""A user's program with every kind of handler, on a server that is not there."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

from headrace import App, Context, Retry, current_job

app = App("redis://localhost:1", tenant="kinds", retry_for=0)


@dataclass
class Size:
    """An argument and a result with a type of its own."""

    width: int
    height: int


def where() -> str:
    """Return in which thread this is."""
    return "loop" if threading.current_thread() is threading.main_thread() else "thread"


@app.task(queue="work")
async def in_loop(context: Context, number: int) -> str:
    await context.progress(0.5, f"half of {number}")
    await context.emit(number)
    return where()


@app.task(queue="work")
def in_thread(size: Size) -> tuple[str, int]:
    assert current_job().task == in_thread.name
    return where(), size.width * size.height


@app.task(queue="work", executor="process")
def in_process(size: Size, *, turn: bool = True) -> Size:
    assert type(size) is Size
    assert where() == "thread"
    return Size(size.height, size.width) if turn else size


@app.task(queue="work", executor="process")
def process_id() -> int:
    return os.getpid()


@app.task(queue="work", executor="process", max_attempts=3, retry=Retry(min=60, max=60))
def talk(context: Context, count: int) -> int:
    """Fail at the first attempt, in the midst of it."""
    for number in range(count):
        context.emit({"start": context.start, "number": number})
        context.progress((number + 1) / count, f"piece {number}")
        if context.start == 1 and number == 1:
            raise KeyError("the line is dead")
    return count


@app.task(queue="work", executor="process", timeout=0.05, max_attempts=1)
def dawdle() -> str:
    time.sleep(0.1)
    return "late"


@app.task(queue="work", executor="process")
def polite(context: Context) -> str:
    """Go on until it is asked to stop."""
    context.emit("begun")
    while not context.cancelled():
        time.sleep(0.001)
    return "what there was"

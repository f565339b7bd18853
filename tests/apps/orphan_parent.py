"""A program that is killed while it starts the process of a slot.

python -m tests.apps.orphan_parent hang <note>    the process hangs while it imports this module
python -m tests.apps.orphan_parent many <count>   so many programs, each killed a bit later
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
import threading
from pathlib import Path

from headrace.json_codec import JSON
from headrace.worker.process_slots.child import ChildSettings
from headrace.worker.process_slots.functions import Function
from headrace.worker.process_slots.process import SlotProcess

WITHIN_S = 0.05

if __name__ == "__mp_main__" and sys.argv[1] == "hang":
    Path(sys.argv[2]).write_text(str(os.getpid()))
    threading.Event().wait()


async def _start(kill_after_s: float) -> None:
    functions = {"abs": Function("builtins", "abs")}
    child = SlotProcess(functions, ChildSettings(parent=os.getpid(), codec=pickle.dumps(JSON)))
    async with asyncio.TaskGroup() as group:
        group.create_task(child.warm())
        await asyncio.sleep(0)  # now it has started the process
        await asyncio.sleep(kill_after_s)
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Do what the arguments say."""
    how, argument = sys.argv[1:]
    if how == "hang":
        asyncio.run(_start(3600))
    for number in range(int(argument)):
        if os.fork() == 0:
            asyncio.run(_start(WITHIN_S * number / int(argument)))
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()

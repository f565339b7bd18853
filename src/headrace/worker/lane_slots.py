"""How many slots a worker has of each lane that it serves: checked, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.app import App
from headrace.errors import InvalidOption
from headrace.job import DEFAULT_LANE, PROCESS_LANE, check_name
from headrace.plain import shown
from headrace.settings import ExecutorKind, check_count
from headrace.worker.process_slots.functions import cores

MOST_OF_A_LANE = 10_000
MOST_OF_PROCESSES = 1_000

Lanes = Mapping[str, int | None] | Sequence[str]
"""The slots of each lane, None for as many as the worker has attempts at once; or names alone."""


class LaneSlots(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has for attempts.

    Attributes:
        slots: of each lane that it serves.
        processes: for tasks that run in one.
    """

    slots: dict[str, int]
    processes: int

    @property
    def beside_processes(self) -> int:
        """How many attempts run at once in the lanes that have no processes of their own."""
        return sum(count for lane, count in self.slots.items() if lane != PROCESS_LANE)


def lane_slots(
    app: App[Any], lanes: Lanes | None, *, concurrency: int, process_slots: int | None
) -> LaneSlots:
    """Return the slots of a worker of an app.

    Args:
        app: its tasks tell which lanes have some that run in processes.
        lanes: which to serve; None: the default one, and that of processes if a task has it.
        concurrency: slots of a lane that says no number.
        process_slots: those of the lane of processes if it says none; None: one a processor.

    Raises:
        InvalidOption: a name or number is not valid, a number is said twice, no lane is left to
            serve, or one has tasks for processes and there are none.
    """
    concurrency = check_count(concurrency, name="concurrency", most=MOST_OF_A_LANE)
    default = cores()
    if process_slots is not None:
        default = check_count(process_slots, name="process_slots", most=MOST_OF_PROCESSES, least=0)
    said = {DEFAULT_LANE: None, PROCESS_LANE: None} if lanes is None else _checked(lanes)
    if process_slots is not None and said.get(PROCESS_LANE) is not None:
        raise InvalidOption(
            f"process_slots={process_slots} and the lane process with {said[PROCESS_LANE]} slots: "
            "say one of them"
        )
    of_processes = {
        task.settings.lane: name
        for name, task in app.tasks.items()
        if task.settings.executor is ExecutorKind.PROCESS
    }
    slots = {
        lane: count or (default if lane == PROCESS_LANE else concurrency)
        for lane, count in said.items()
    }
    processes = slots.get(PROCESS_LANE, default)
    if not processes or PROCESS_LANE not in of_processes:
        slots.pop(PROCESS_LANE, None)
    if not slots:
        raise InvalidOption("lanes names process alone, and no task of the app runs in processes")
    served = of_processes.keys() & slots.keys()
    if served and not processes:
        lane = min(served)
        raise InvalidOption(
            f"process_slots=0, but {of_processes[lane]} of the lane {lane!r} runs in a process: "
            "allow one or more, or leave the lane to other workers"
        )
    return LaneSlots(slots=slots, processes=processes if served else 0)


def check_fit(app: App[Any], queues: Iterable[str], slots: Mapping[str, int]) -> None:
    """See that a worker has the slots that each task holds of its queues and lanes.

    Raises:
        InvalidOption: one holds more, so that its jobs would never run here.
    """
    served = set(queues)
    for name, task in app.tasks.items():
        settings = task.settings
        if settings.queue in served and settings.slots > slots.get(settings.lane, MOST_OF_A_LANE):
            lane = settings.lane
            raise InvalidOption(
                f"slots={settings.slots} of the task {name!r} is more than the {slots[lane]} of "
                f"its lane {lane!r} here: give the lane more, as by --lanes "
                f"{lane}:{settings.slots} or lanes=, or leave queue {settings.queue!r} or the lane "
                "to other workers"
            )


def _checked(lanes: Lanes) -> dict[str, int | None]:
    if isinstance(lanes, str) or not isinstance(lanes, Mapping | Iterable):
        raise InvalidOption(f"lanes={shown(lanes)}: pass a list of names or a dict of slots")
    pairs = lanes.items() if isinstance(lanes, Mapping) else [(lane, None) for lane in lanes]
    found: dict[str, int | None] = {}
    for lane, count in pairs:
        name = check_name(lane, what="lane")
        if name in found:
            raise InvalidOption(f"the lane {name!r} is named twice: say it once")
        most = MOST_OF_PROCESSES if name == PROCESS_LANE else MOST_OF_A_LANE
        found[name] = (
            None if count is None else check_count(count, name=f"slots of lane {name!r}", most=most)
        )
    if not found:
        raise InvalidOption("lanes names none: leave it out, or name one")
    return found

"""The workers of one supervisor, seen and steered as if they were one."""

from __future__ import annotations

import signal

import anyio

from headrace.supervisor.children import SupervisedWorker

FRESH_S = 1.0
"""A worker that has been silent for longer gives no sign of life: four reports are missing."""


class Crew:
    """Some worker processes; they are `headrace.worker.vitals.Vitals` together.

    Args:
        count: how many, at least 1.
        concurrency: of each.
        stall_s: how long the event loop of one may stand still.

    Attributes:
        signals: how many have asked for the end.
        ending: set by the first of them.
    """

    def __init__(self, count: int, *, concurrency: int, stall_s: float) -> None:
        self.children: list[SupervisedWorker] = [
            SupervisedWorker(number) for number in range(1, count + 1)
        ]
        self.concurrency: int = concurrency * count
        self.signals: int = 0
        self.ending: anyio.Event = anyio.Event()
        self._stall_s = stall_s

    @property
    def is_ending(self) -> bool:
        """Whether a signal has asked for the end."""
        return self.signals > 0

    @property
    def is_running(self) -> bool:
        """Whether any has a process."""
        return any(child.is_running for child in self.children)

    @property
    def is_turning(self) -> bool:
        """Whether no process that has ever reported has fallen silent."""
        return all(child.silent_s <= FRESH_S for child in self.children)

    @property
    def is_alive(self) -> bool:
        """Whether the event loop of each has turned within the time that it may stand still."""
        return all(child.silent_s <= self._stall_s for child in self.children)

    @property
    def is_ready(self) -> bool:
        """Whether all of them consume."""
        reports = [child.report for child in self.children]
        return not self.is_ending and all(report and report.is_ready for report in reports)

    @property
    def active(self) -> int:
        """How many attempts run."""
        return sum(child.report.active for child in self.children if child.report)

    @property
    def stuck(self) -> int:
        """How many handlers go on although they were given up."""
        return sum(child.report.stuck for child in self.children if child.report)

    @property
    def loop_lag(self) -> float:
        """How late the latest event loop was, in seconds."""
        return max((child.report.lag_s for child in self.children if child.report), default=0.0)

    def replace(self) -> None:
        """Have every worker make room for a new one, once it has ended in order."""
        for child in self.children:
            child.replace()

    def quiet(self) -> None:
        """Have all of them claim no more, and those that follow them."""
        for child in self.children:
            child.quiet()

    def end(self, number: signal.Signals) -> None:
        """Pass on a signal; workers know what the second means, and the third kills them."""
        self.signals += 1
        self.ending.set()
        for child in self.children:
            # They would end by the third themselves, but not while they are stopped or busy in C.
            child.end(number if self.signals < 3 else signal.SIGKILL)

"""How much processor time this process and those below it have used, by who they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress

import psutil


class Usage:
    """Processor time that only grows: a process that has ended keeps its last reading.

    Spark ends Python workers that had nothing to do for a minute. Their parent ignores the ends of
    its children, so that the kernel adds their time to nobody's. What a process uses between its
    last reading and its end is not seen.

    Args:
        whose: under which name the time of a process is counted.
    """

    def __init__(self, whose: Callable[[psutil.Process], str]) -> None:
        self._whose = whose
        self._read: dict[psutil.Process, tuple[str, float]] = {}

    def read(self) -> Mapping[str, float]:
        """Return the seconds that were used until now, by name; 0 of others."""
        me = psutil.Process()
        for process in (me, *me.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._read[process] = self._whose(process), times.user + times.system
        used_s: defaultdict[str, float] = defaultdict(float)
        for name, seconds in self._read.values():
            used_s[name] += seconds
        return used_s

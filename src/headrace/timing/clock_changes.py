"""Which instants a series of wall times stands for, where clocks are set forward and back.

Both functions take ascending wall times and yield ascending instants, or descending ones and yield
descending. docs/cron.md has the rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import tzinfo

from headrace.timing.zones import end_of_gap, instants_of


def once_each(walls: Iterable[int], zone: tzinfo, *, is_shifted: bool) -> Iterator[int]:
    """Yield one instant for each wall time: the first, if it comes twice.

    If it does not exist, that is the first instant after the gap if ``is_shifted``, else none.
    Several that fall on one instant yield it once.
    """
    last = None
    for wall_s in walls:
        instant, other = instants_of(zone, wall_s)
        if instant > other:
            if not is_shifted:
                continue
            instant = end_of_gap(zone, wall_s)
        if instant != last:
            yield instant
        last = instant


def whenever_shown(walls: Iterable[int], zone: tzinfo, *, is_ascending: bool) -> Iterator[int]:
    """Yield each instant at which the clock shows one of the wall times."""
    # The second pass of the clock over an hour comes after all of the first one.
    other_pass: deque[int] = deque()
    for wall_s in walls:
        first, second = instants_of(zone, wall_s)
        if first > second:
            continue
        near, far = (first, second) if is_ascending else (second, first)
        while other_pass and (other_pass[0] < near) == is_ascending:
            yield other_pass.popleft()
        yield near
        if near != far:
            other_pass.append(far)
    yield from other_pass

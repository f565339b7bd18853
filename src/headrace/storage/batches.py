"""Splits what goes to the storage into calls of the size that one may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from headrace.storage.limits import BATCH_LIMIT, BATCH_LIMIT_BYTES

T = TypeVar("T")


def batches(items: Sequence[T], size_of: Callable[[T], int] | None = None) -> Iterator[Sequence[T]]:
    """Yield the items in order, as many at a time as one call may bring.

    Args:
        items: any number of them.
        size_of: returns the bytes of one, where those count.
    """
    for first in range(0, len(items), BATCH_LIMIT):
        block = items[first : first + BATCH_LIMIT]
        if size_of is None or sum(map(size_of, block)) <= BATCH_LIMIT_BYTES:
            yield block
            continue
        while block:
            count = fitting((1, size_of(item)) for item in block)
            yield block[:count]
            block = block[count:]


def fitting(parts: Iterable[tuple[int, int]]) -> int:
    """Return how many of the first parts fit into one call, the first one in any case.

    Args:
        parts: of each, how many items it has and how many bytes.
    """
    fit = items = size = 0
    for more_items, more_bytes in parts:
        items += more_items
        size += more_bytes
        if fit and (items > BATCH_LIMIT or size > BATCH_LIMIT_BYTES):
            break
        fit += 1
    return fit

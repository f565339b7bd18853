"""Splits what goes to the storage into calls of the size that one may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from headrace.storage.limits import BATCH_LIMIT, BATCH_LIMIT_BYTES, MOVED_A_CALL

T = TypeVar("T")


def batches(
    items: Sequence[T], size_of: Callable[[T], int] | None = None, *, most: int = BATCH_LIMIT
) -> Iterator[Sequence[T]]:
    """Yield the items in order, as many at a time as one call may bring.

    Args:
        items: any number of them.
        size_of: returns the bytes of one, where those count.
        most: how many of them.
    """
    for first in range(0, len(items), most):
        block = items[first : first + most]
        if size_of is None or sum(map(size_of, block)) <= BATCH_LIMIT_BYTES:
            yield block
            continue
        while block:
            count = fitting((1, size_of(item)) for item in block)
            yield block[:count]
            block = block[count:]


def moved(jobs: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield jobs in order, as many at a time as one call may end, requeue or put back."""
    return batches(jobs, most=MOVED_A_CALL)


def fitting(parts: Iterable[tuple[int, int]], *, most: int = BATCH_LIMIT) -> int:
    """Return how many of the first parts fit into one call, the first one in any case.

    Args:
        parts: of each, how many items it has and how many bytes.
        most: how many items fit.
    """
    fit = items = size = 0
    for more_items, more_bytes in parts:
        items += more_items
        size += more_bytes
        if fit and (items > most or size > BATCH_LIMIT_BYTES):
            break
        fit += 1
    return fit

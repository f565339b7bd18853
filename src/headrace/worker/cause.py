"""Takes the one error out of the groups in which task groups raise it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sole_cause() -> Iterator[None]:
    """Raise what several tasks of the block, or one, have ended with as it is, if it is one thing.

    Errors of different kinds or texts stay a group.
    """
    group: BaseExceptionGroup[BaseException] | None = None
    try:
        yield
    except BaseExceptionGroup as error:
        group = error
    # Out of the clause above, so that the group is not taken for its context.
    if group is not None:
        first, *others = _leaves(group)
        is_one = all(type(e) is type(first) and e.args == first.args for e in others)
        raise first if is_one else group


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for part in error.exceptions for leaf in _leaves(part)]
    return [error]

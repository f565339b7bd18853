"""Lists of what queues have, such as readers and limits, for some queues or for all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from headrace.cli.options import Target, queue_names, queue_of, run
from headrace.cli.output import echo_json, note
from headrace.cli.tables import Cell, Column, table
from headrace.job import check_name
from headrace.queues import Queue
from headrace.views.value import PublicValue

V = TypeVar("V", bound=PublicValue)


def list_of_queues(
    target: Target,
    names: Sequence[str],
    read: Callable[[Queue], Awaitable[Sequence[V]]],
    *,
    columns: Sequence[Column],
    line: Callable[[V], list[Cell]],
    none: str,
    output: str,
    is_wide: bool,
) -> None:
    """Print what some queues have, as a table or as one document.

    Args:
        target: where they are.
        names: of the queues, none for all.
        read: returns what one of them has.
        columns: of the table.
        line: returns a row of it.
        none: what to say where there is nothing, with {} for whose.
        output: ``table`` or ``json``.
        is_wide: show all columns.

    Raises:
        InvalidOption: a name is not valid.
    """
    names = [check_name(name, what="queue") for name in names]
    found = run(_load(target, names, read))
    if output == "json":
        echo_json([each.to_dict() for each in found])
    elif not found:
        whose = f" of {', '.join(names)}" if names else ""
        note(f"{none.format(whose)} in {target.where}.")
    else:
        table(columns, [line(each) for each in found], is_wide=is_wide)


async def _load(
    target: Target, names: Sequence[str], read: Callable[[Queue], Awaitable[Sequence[V]]]
) -> list[V]:
    async with target.open() as storage:
        wanted = dict.fromkeys(names) or await queue_names(storage)
        return [each for name in wanted for each in await read(queue_of(storage, name))]

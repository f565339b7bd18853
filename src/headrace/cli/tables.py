"""Aligned columns for people, which fit the terminal: what matters least goes first."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import msgspec

from headrace.cli.colours import Coloured, colour_of, styled
from headrace.cli.output import GAP, echo_styled, one_line

LEAST_CUT = 24
"""Narrowest that a column becomes whose values may be cut."""

GOOD_CUT = 60
"""How wide it is at least while there are columns of a rank of `MINOR` or more beside it."""

MINOR = 6

Cell = str | int | Coloured


class Column(msgspec.Struct, frozen=True):
    """One column.

    Attributes:
        name: its header.
        rank: 0 if it is always shown; of the others the highest goes first where room is short.
        is_cut: its values may lose their end, rather than that another column goes.
        is_right: its values stand to the right, as whole numbers do in any case.
    """

    name: str
    rank: int = 0
    is_cut: bool = False
    is_right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, is_wide: bool) -> None:
    """Print aligned columns, whole numbers to the right; all of them where no terminal shows them.

    Args:
        columns: what there is to show.
        rows: a value for each column.
        is_wide: show everything, and let the terminal wrap it.
    """
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_wide else 0
    for line in lines(columns, rows, room=room):
        echo_styled(line)


def lines(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, room: int) -> list[str]:
    """Return the header and the rows in lines of at most ``room`` characters, 0 for any number."""
    texts = [[column.name for column in columns], *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in texts) for at in range(len(columns))]
    shown = fit(columns, widths, room)
    rights = {
        at
        for at in shown
        if columns[at].is_right or (rows and all(_is_number(row[at]) for row in rows))
    }
    found = []
    for row, line in zip([None, *rows], texts, strict=True):
        parts = []
        for at, width in shown.items():
            text = cut(line[at], width)
            text = text.rjust(width) if at in rights else text.ljust(width)
            if at == max(shown):
                text = text.rstrip()
            parts.append(styled(text, "bold" if row is None else colour_of(row[at])))
        found.append(GAP.join(parts).rstrip())
    return found


def fit(columns: Sequence[Column], widths: Sequence[int], room: int) -> dict[int, int]:
    """Return which columns to show in ``room`` characters, by number, each with its width."""
    shown = list(range(len(columns)))
    if not room:
        return {at: widths[at] for at in shown}

    def least(at: int, cut_to: int = LEAST_CUT) -> int:
        return min(widths[at], cut_to) if columns[at].is_cut else widths[at]

    def over(cut_to: int = LEAST_CUT) -> int:
        return sum(least(at, cut_to) for at in shown) + len(GAP) * (len(shown) - 1) - room

    for cut_to, from_rank in ((GOOD_CUT, MINOR), (LEAST_CUT, 1)):
        spare = [at for at in shown if columns[at].rank >= from_rank]
        for at in sorted(spare, key=lambda at: columns[at].rank, reverse=True):
            if over(cut_to) > 0:
                shown.remove(at)
    left = max(0, -over())
    found = {}
    for at in shown:
        more = min(left, widths[at] - least(at))
        found[at] = least(at) + more
        left -= more
    # What can't be left out may be too wide all the same.
    while (used := sum(found.values()) + len(GAP) * (len(found) - 1)) > room:
        at = max(found)
        found[at] -= min(used - room, found[at])
        if not found[at]:
            del found[at]
    return found


def cut(text: str, width: int) -> str:
    """Return the text, without its end if it is wider."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def _is_number(cell: Cell) -> bool:
    return isinstance(cell.value if isinstance(cell, Coloured) else cell, int)


def _text(cell: Cell) -> str:
    value = cell.value if isinstance(cell, Coloured) else cell
    return f"{value:,}" if isinstance(value, int) else one_line(value)

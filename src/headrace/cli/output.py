"""What goes to standard output: aligned text for people, or one JSON document."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from headrace.description import is_a, told
from headrace.errors import HeadraceError, StorageUnavailable
from headrace.plain import printable

GAP = "  "
_HIGH_CONTROL = re.compile(r"[\x7f-\x9f]")
_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))


def echo(text: str) -> None:
    """Print text, without what a terminal would obey."""
    click.echo(printable(text))


def note(text: str) -> None:
    """Say something beside the output, on standard error."""
    click.echo(printable(text), err=True)


def echo_json(value: Any) -> None:
    """Print one JSON document."""
    document = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    # JSON escapes the other control characters itself.
    click.echo(_HIGH_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", document))


def one_line(text: str) -> str:
    """Return text as one printable line."""
    return printable(" ".join(text.split()))


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str | int]], *, is_cut: bool = True
) -> None:
    """Print aligned columns, whole numbers to the right.

    Args:
        headers: names of the columns.
        rows: their values.
        is_cut: a terminal's width cuts the last column, rather than wrapping it.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    rights = [
        bool(cells) and all(isinstance(row[at], int) for row in rows) for at in range(len(headers))
    ]
    lines = [list(headers), *cells]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headers))]
    room = shutil.get_terminal_size().columns if is_cut and sys.stdout.isatty() else 0
    for line in lines:
        text = GAP.join(
            word.rjust(width) if is_right else word.ljust(width)
            for word, width, is_right in zip(line, widths, rights, strict=True)
        ).rstrip()
        echo(text[: room - 1] + "…" if room and len(text) > room else text)


def _cell(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else one_line(value)


def fields(pairs: Iterable[tuple[str, str]], *, indent: str = "") -> None:
    """Print names and values, one a line, the values aligned; empty values are left out."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        echo(f"{indent}{name.ljust(width)}{GAP}{value}")


def span(milliseconds: int) -> str:
    """Return a duration with its two largest units: ``350ms``, ``4.2s``, ``5m 10s``, ``3d 4h``."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f}s"
    left = milliseconds
    parts: list[str] = []
    for size, unit in _SPANS:
        if left >= size or parts:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(part for part in parts[:2] if not part.startswith("0"))


def ago(instant: datetime | None) -> str:
    """Return how far an instant is from now: ``5m 10s ago`` or ``in 2h``; "" for none."""
    if instant is None:
        return ""
    distance = round((datetime.now(UTC) - instant).total_seconds() * 1000)
    return f"in {span(-distance)}" if distance < 0 else f"{span(distance)} ago"


def when(instant: datetime | None) -> str:
    """Return an instant in UTC and relative to now; "" for none."""
    return "" if instant is None else f"{instant:%Y-%m-%d %H:%M:%S} UTC ({ago(instant)})"


def plural(count: int, noun: str) -> str:
    """Return ``1 job``, ``1,200 jobs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def leading(error: BaseException) -> BaseException:
    """Return the error that tells most of a group: one of ours, else the first."""
    while is_a(error, BaseExceptionGroup):
        inner = [leading(part) for part in error.exceptions]
        error = next((part for part in inner if is_a(part, HeadraceError)), inner[0])
    return error


def message_of(error: BaseException) -> str:
    """Return what an error says to people: what, which value, what to do next."""
    if not issubclass(type(error), HeadraceError | click.ClickException):
        return f"{told(error)} (add --traceback to see where)"
    match error:
        case click.UsageError(ctx=click.Context() as context):
            return f"{error.format_message().rstrip('.')} (see {context.command_path} --help)"
        case click.ClickException():
            return error.format_message()
        case StorageUnavailable() if str(error).startswith("Redis"):
            what = str(error).rstrip(".")
            return f"{what}: is it running there? Name another by --url or HEADRACE_URL"
        case _:
            return str(error)

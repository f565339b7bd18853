"""What goes to standard output: aligned text for people, or one JSON document."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from headrace.cli.colours import Coloured, colour_of, styled
from headrace.description import is_a, told
from headrace.errors import HeadraceError
from headrace.logs.formatting import has_colors
from headrace.plain import printable
from headrace.views.wording import plural as plural
from headrace.views.wording import span as span

GAP = "  "
_UNSAFE = re.compile(r"[\x7f-\x9f\u2028\u2029]")
"""What a terminal would obey, and what some readers take for the end of a line."""


def echo(text: str, *, is_line: bool = True) -> None:
    """Print text, without what a terminal would obey."""
    click.echo(printable(text), nl=is_line)


def echo_styled(text: str) -> None:
    """Print text that is printable but for colours, which are left out where none are shown."""
    click.echo(text, color=has_colors(sys.stdout, os.environ))


def note(text: str) -> None:
    """Say something beside the output, on standard error."""
    click.echo(printable(text), err=True)


def echo_json(value: Any) -> None:
    """Print one JSON document."""
    _echo_document(msgspec.json.format(msgspec.json.encode(value), indent=2))


def echo_json_line(value: Any) -> None:
    """Print one JSON document of many, each on a line of its own."""
    _echo_document(msgspec.json.encode(value))


def _echo_document(document: bytes) -> None:
    # JSON escapes the other control characters itself.
    click.echo(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", document.decode()))


def one_line(text: str) -> str:
    """Return text as one printable line."""
    return printable(" ".join(text.split()))


def fields(pairs: Iterable[tuple[str, str | Coloured]], *, indent: str = "") -> None:
    """Print names and values, one a line, the values aligned; empty values are left out."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        text = printable(str(value.value if isinstance(value, Coloured) else value))
        echo_styled(f"{indent}{name.ljust(width)}{GAP}{styled(text, colour_of(value))}")


def span_of(seconds: float | None) -> str:
    """Return a duration in seconds as `span` does; ``-`` where there is none."""
    return "-" if seconds is None else span(round(seconds * 1000))


def ago(instant: datetime | None) -> str:
    """Return how far an instant is from now: ``5m 10s ago`` or ``in 2h``; "" for none."""
    if instant is None:
        return ""
    distance = round((datetime.now(UTC) - instant).total_seconds() * 1000)
    return f"in {span(-distance)}" if distance < 0 else f"{span(distance)} ago"


def when(instant: datetime | None) -> str:
    """Return an instant in UTC and relative to now; "" for none."""
    return "" if instant is None else f"{instant:%Y-%m-%d %H:%M:%S} UTC ({ago(instant)})"


def rate(per_second: float) -> str:
    """Return a rate in about three digits: ``0.017``, ``4.2``, ``1,200``."""
    if per_second >= 100:
        return f"{per_second:,.0f}"
    return f"{per_second:.1f}" if per_second >= 1 else f"{per_second:.2g}"


def tell_if_new(name: str, known: Sequence[str]) -> None:
    """Say that nobody has used a queue: one that was mistyped would else look like an idle one."""
    if name not in known:
        note(f"Note: no job or worker has used queue {name!r} yet.")


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
        case _:
            return str(error)

"""``headrace schedule next``: when an expression is due next, before anybody stores it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import click
import msgspec

from headrace.cli.colours import Coloured
from headrace.cli.options import option, output_option
from headrace.cli.output import echo, echo_json, note, one_line
from headrace.cli.quantities import instant
from headrace.cli.tables import Column, table
from headrace.cli.timings import SaidTiming, dst_option, every_option, seconds_option
from headrace.clock import datetime_of, instant_ms
from headrace.timing import Timing
from headrace.timing.zones import zone_of

MOST = 1000
COLUMNS = (Column("LOCAL"), Column("UTC"), Column("NOTE", is_cut=True))


class NextInstant(msgspec.Struct, kw_only=True):
    """One occurrence; ``rule`` says which rule of clock changes applied there, null if none."""

    at: datetime
    local: datetime
    rule: str | None


class NextInstants(msgspec.Struct, kw_only=True):
    """The JSON document of ``schedule next``."""

    timing: str
    words: str
    tz: str
    instants: list[NextInstant]


@click.command("next")
@click.argument("expression", metavar="[EXPR]", required=False)
@every_option
@option("--tz", metavar="ZONE", help="Of the expression, and of the times shown.  [default: UTC]")
@dst_option
@seconds_option
@option("--after", type=instant, metavar="INSTANT", help="Only later ones.  [default: now]")
@option("--count", "-n", type=click.IntRange(1, MOST), default=10, help="How many.")
@output_option
def next_command(
    *,
    expression: str | None,
    every: float | None,
    tz: str | None,
    dst: Literal["shift", "skip"] | None,
    seconds: bool | None,
    after: datetime | None,
    count: int,
    output: str,
) -> None:
    """Show the next occurrences of a cron expression, or of --every.

    Each in the zone's own time and in UTC, with a note where the clocks change and a rule applied.
    It asks no storage, and nothing is stored.

    \b
    headrace schedule next '30 2 * * *' --tz Europe/Berlin --after 2027-03-26T12:00Z
    headrace schedule next --every 6h
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    if (expression is None) == (every is None):
        raise click.UsageError("say an expression, or --every")
    is_cron = expression is not None
    said = SaidTiming(
        cron=expression, every=every, tz=tz if is_cron else None, dst=dst, seconds=seconds
    )
    zone = "UTC" if tz is None else tz
    after_ms = instant_ms(datetime.now(UTC) if after is None else after, name="--after")
    found = next_instants(said.timing(), zone, after_ms=after_ms, count=count)
    if output == "json":
        echo_json(found)
    else:
        _show(found)


def next_instants(timing: Timing, zone: str, *, after_ms: int, count: int) -> NextInstants:
    """Return the first instants after one, at most ``count``.

    Raises:
        InvalidOption: there is no such zone.
    """
    tz = zone_of(zone)
    instants: list[NextInstant] = []
    while len(instants) < count and (found_ms := timing.after(after_ms)) is not None:
        at = datetime_of(found_ms)
        rule = timing.explain_instant(found_ms) or None
        instants.append(NextInstant(at=at, local=at.astimezone(tz), rule=rule))
        after_ms = found_ms
    return NextInstants(timing=str(timing), words=timing.words(), tz=zone, instants=instants)


def _show(found: NextInstants) -> None:
    echo(one_line(found.words))
    if not found.instants:
        note("There is no occurrence after that.")
        return
    rows = [
        (
            f"{_clock(next_one.local)} {next_one.local:%Z}",
            _clock(next_one.at),
            Coloured(next_one.rule or "", "yellow"),
        )
        for next_one in found.instants
    ]
    table(COLUMNS, rows, is_wide=False)


def _clock(at: datetime) -> str:
    precision = "milliseconds" if at.microsecond else "seconds"
    return f"{at:%a} {at.replace(tzinfo=None).isoformat(' ', precision)}"

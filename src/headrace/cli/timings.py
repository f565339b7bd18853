"""The options that say when a schedule's occurrences are, and what they say."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import click
import msgspec
from msgspec.structs import replace

from headrace.cli.options import Function, duration_option, option
from headrace.cli.quantities import instant
from headrace.timing import At, Cron, Every, Timing

every_option = duration_option("--every", help="An occurrence each so long.")
seconds_option = option(
    "--seconds/--no-seconds",
    default=None,
    help="The expression has six fields, seconds first.  [default: five]",
)
dst_option = option(
    "--dst",
    type=click.Choice(["shift", "skip"]),
    help="A local time that a clock change leaves out: after it, or not at all.  [default: shift]",
)


class SaidTiming(msgspec.Struct, frozen=True, kw_only=True):
    """What options say of a timing; None says nothing."""

    cron: str | None = None
    every: float | None = None
    at: datetime | None = None
    tz: str | None = None
    dst: Literal["shift", "skip"] | None = None
    seconds: bool | None = None

    @property
    def is_any(self) -> bool:
        """Whether they say anything."""
        return any(said is not None for said in msgspec.structs.astuple(self))

    def timing(self) -> Timing:
        """Return the timing.

        Raises:
            UsageError: none is said or several are, or what goes with another.
            InvalidOption: a value is not valid.
        """
        made = self._made(None)
        if made is None:
            raise click.UsageError("say when: --cron, --every or --at")
        return made

    def over(self, before: Timing) -> Timing:
        """Return the timing that this makes of the one before, of which what is not said stays.

        Raises:
            UsageError, InvalidOption: as `timing`.
        """
        return self._made(before) or before

    def _made(self, before: Timing | None) -> Timing | None:
        if sum(said is not None for said in (self.cron, self.every, self.at)) > 1:
            raise click.UsageError("say one of --cron, --every and --at")
        of_cron = {
            name: value
            for name in ("tz", "dst", "seconds")
            if (value := getattr(self, name)) is not None
        }
        if self.every is None and self.at is None and isinstance(before, Cron):
            expression = before.expression if self.cron is None else self.cron
            return replace(before, expression=expression, **of_cron)
        if self.cron is not None:
            return Cron(self.cron, **of_cron)
        if of_cron:
            raise click.UsageError(f"--{next(iter(of_cron))} goes with --cron")
        if self.every is not None:
            return Every(self.every)
        return None if self.at is None else At(self.at)


def on_timing(function: Function) -> Callable[..., Any]:
    """Add the options of a timing, and pass on what they say as ``timing``."""

    @option("--cron", metavar="EXPR", help="Occurrences by a cron expression, of five fields.")
    @every_option
    @option("--at", type=instant, metavar="INSTANT", help="One occurrence, at this instant.")
    @option("--tz", metavar="ZONE", help="The expression's time zone.  [default: UTC]")
    @dst_option
    @seconds_option
    @functools.wraps(function)
    def wrapper(
        *,
        cron: str | None,
        every: float | None,
        at: datetime | None,
        tz: str | None,
        dst: Literal["shift", "skip"] | None,
        seconds: bool | None,
        **rest: Any,
    ) -> Any:
        timing = SaidTiming(cron=cron, every=every, at=at, tz=tz, dst=dst, seconds=seconds)
        return function(timing=timing, **rest)

    return wrapper

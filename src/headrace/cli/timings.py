"""The options that say when a schedule's occurrences are, and what they say."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import click
import msgspec
from msgspec.structs import replace

from headrace.cli.options import duration_option, option
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

    def timing(self) -> Timing:
        """Return the timing.

        Raises:
            UsageError: none is said or several are, or what goes with another.
            InvalidOption: a value is not valid.
        """
        found = self.over(None)
        if found is None:
            raise click.UsageError("say when: --cron, --every or --at")
        return found

    def over(self, before: Timing | None) -> Timing | None:
        """Return the timing that this makes of the one before: that itself if nothing is said.

        Raises:
            UsageError, InvalidOption: as `timing`.
        """
        if sum(said is not None for said in (self.cron, self.every, self.at)) > 1:
            raise click.UsageError("say one of --cron, --every and --at")
        of_cron = {
            name: value
            for name in ("tz", "dst", "seconds")
            if (value := getattr(self, name)) is not None
        }
        if self.every is None and self.at is None and isinstance(before, Cron):
            if self.cron is not None:
                of_cron["expression"] = self.cron
            return replace(before, **of_cron) if of_cron else before
        if self.cron is not None:
            return Cron(self.cron, **of_cron)
        if of_cron:
            raise click.UsageError(f"--{next(iter(of_cron))} goes with --cron")
        if self.every is not None:
            return Every(self.every)
        return before if self.at is None else At(self.at)

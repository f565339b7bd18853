"""The options that say how a schedule's occurrences are fired, and what they say."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import click
import msgspec

from headrace.cli.options import Function, duration_option, option
from headrace.cli.quantities import instant
from headrace.plain import shown
from headrace.policy import policy_fields
from headrace.schedule import CatchUp


class SaidPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What options say of a schedule beside its job and timing; None says nothing."""

    catch_up: CatchUp | None
    jitter: float | None
    overlap: Literal["allow", "skip"] | None
    start: datetime | None
    end: datetime | None

    def fields(self) -> dict[str, Any]:
        """Return what is said, by the fields of `ScheduleBody`.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        return policy_fields(msgspec.structs.asdict(self), taker="schedule")


def catch_up(value: str | int) -> CatchUp:
    """Read what becomes of late occurrences.

    Raises:
        BadParameter: it is neither a word nor a whole number.
    """
    match value:
        case "skip" | "latest":
            return value
        case str() if not value.isdecimal():
            raise click.BadParameter(
                f"{shown(value)} is no rule: use skip, latest, or how many of the newest"
            )
    return int(value)


def on_policy(function: Function) -> Callable[..., Any]:
    """Add the options of a schedule's policy, and pass on what they say as ``policy``."""

    @option(
        "--catch-up",
        type=catch_up,
        metavar="skip|latest|COUNT",
        help="What becomes of occurrences that nobody fired in time.  [default: skip]",
    )
    @duration_option("--jitter", help="By how much an occurrence comes late at most.  [default: 0]")
    @option(
        "--overlap",
        type=click.Choice(["allow", "skip"]),
        help="Whether one is fired while the last one's job has not ended.  [default: allow]",
    )
    @option("--start", type=instant, metavar="INSTANT", help="No occurrence is before it.")
    @option("--end", type=instant, metavar="INSTANT", help="No occurrence is after it.")
    @functools.wraps(function)
    def wrapper(
        *,
        catch_up: CatchUp | None,
        jitter: float | None,
        overlap: Literal["allow", "skip"] | None,
        start: datetime | None,
        end: datetime | None,
        **rest: Any,
    ) -> Any:
        policy = SaidPolicy(catch_up=catch_up, jitter=jitter, overlap=overlap, start=start, end=end)
        return function(policy=policy, **rest)

    return wrapper

"""The options of ``headrace enqueue`` about a job that has the id already, and what they say."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import click

from headrace.cli.options import Function, option
from headrace.options import JobOptions

_RUN_AT: dict[str, bool | Literal["if_later", "if_earlier"]] = {
    "always": True,
    "never": False,
    "if-later": "if_later",
    "if-earlier": "if_earlier",
}


def on_conflict_options(function: Function) -> Callable[..., Any]:
    """Add the options, and pass on what they say as ``conflict``."""

    @option(
        "--on-conflict",
        type=click.Choice(["skip", "update"]),
        help="What becomes of a job with this --id: it stays as it is, or is changed to this one.  "
        "[default: skip]",
    )
    @option(
        "--update-run-at",
        type=click.Choice(list(_RUN_AT)),
        help="With update: when its time is changed.  [default: always]",
    )
    @option("--keep-data", is_flag=True, help="With update: its task, arguments and the like stay.")
    @option("--keep-retry", is_flag=True, help="With update: how often it is tried stays.")
    @option("--reset-counts", is_flag=True, help="With update: failures and stalls begin anew.")
    @functools.wraps(function)
    def wrapper(
        *,
        on_conflict: Literal["skip", "update"] | None,
        update_run_at: str | None,
        keep_data: bool,
        keep_retry: bool,
        reset_counts: bool,
        **rest: Any,
    ) -> Any:
        said = {
            "--update-run-at": update_run_at is not None,
            "--keep-data": keep_data,
            "--keep-retry": keep_retry,
            "--reset-counts": reset_counts,
        }
        for name, is_said in said.items():
            if is_said and on_conflict != "update":
                raise click.UsageError(f"{name} goes with --on-conflict update")
        conflict: JobOptions = {
            "on_conflict": on_conflict,
            "update_run_at": None if update_run_at is None else _RUN_AT[update_run_at],
            "update_data": False if keep_data else None,
            "update_retry": False if keep_retry else None,
            "reset_counts": reset_counts or None,
        }
        return function(conflict=conflict, **rest)

    return wrapper

"""A command with so many options that its help shows them in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click


class GroupedCommand(click.Command):
    """Shows its options under headings.

    Args:
        groups: the names of the options of each group, as the function's parameters have them. An
            option that is in none comes last.
        rest: what `click.Command` takes.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the options."""
        options = (one for one in self.get_params(ctx) if isinstance(one, click.Option))
        shown: dict[str | None, click.Parameter] = {one.name: one for one in options}
        for heading, names in self.groups.items():
            chosen = [shown.pop(name) for name in names if name in shown]
            _write(heading, chosen, ctx, formatter)
        _write("Other options", list(shown.values()), ctx, formatter)


def _write(
    heading: str,
    parameters: Sequence[click.Parameter],
    ctx: click.Context,
    formatter: click.HelpFormatter,
) -> None:
    records = [record for one in parameters if (record := one.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(heading):
            formatter.write_dl(records)

"""A group of commands whose modules are imported when one of them is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A command costs the time and memory of its own module, and not those of all others.

    Args:
        modules: where the command of a name is, as ``module:attribute``.
        everywhere: adds an option to a command; each takes it, and those below it.
        rest: what `click.Group` takes.
    """

    def __init__(
        self,
        *args: Any,
        modules: Mapping[str, str],
        everywhere: Callable[[click.Command], object],
        **rest: Any,
    ) -> None:
        super().__init__(*args, **rest)
        self._modules = modules
        self._everywhere = everywhere
        everywhere(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *self._modules})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, None if there is none."""
        where = self._modules.get(cmd_name)
        if where is not None and cmd_name not in self.commands:
            module, _, attribute = where.partition(":")
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the option that each takes."""
        self._add_option(cmd)
        super().add_command(cmd, name)

    def _add_option(self, command: click.Command) -> None:
        self._everywhere(command)
        if isinstance(command, click.Group):
            for below in command.commands.values():
                self._add_option(below)

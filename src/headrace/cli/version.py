"""Which release this is: a command, and an option before any command."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

import click
import msgspec

from headrace.cli.options import output_option
from headrace.cli.output import echo, echo_json
from headrace.release import VERSION


class Versions(msgspec.Struct):
    """The JSON document of ``version``."""

    headrace: str
    python: str
    redis_py: str


def _versions() -> Versions:
    return Versions(VERSION, platform.python_version(), version_of("redis"))


def _echo_version() -> None:
    found = _versions()
    echo(f"headrace {found.headrace} (Python {found.python}, redis-py {found.redis_py})")


def _end_with_version(context: click.Context, _: click.Parameter, is_asked_for: bool) -> None:  # noqa: FBT001 (click's own call)
    if is_asked_for and not context.resilient_parsing:
        _echo_version()
        context.exit()


version_option = click.option(
    "--version",
    "-V",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    allow_from_autoenv=False,
    callback=_end_with_version,
    help="Print the version.",
)


@click.command()
@output_option
def version(*, output: str) -> None:
    """Print the version."""
    if output == "json":
        echo_json(_versions())
    else:
        _echo_version()

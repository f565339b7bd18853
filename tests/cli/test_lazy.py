"""A command loads its own modules, and not those of others."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from headrace.cli import cli

OTHERS = ("dead", "enqueue", "jobs", "operate", "pipeline", "queues", "schedules", "top", "workers")


def loaded_by(*words: str) -> set[str]:
    """Return the modules that a run of the command line has loaded."""
    program = (
        "import sys, atexit; from headrace.cli import main; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        f"sys.argv = {['headrace', *words]}; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [("version",), ("worker", "--help"), ("-V",)])
def test_a_command_loads_no_other(words: tuple[str, ...]) -> None:
    loaded = loaded_by(*words)
    assert ("headrace.cli.worker" in loaded) == (words[0] == "worker")
    assert not loaded & {f"headrace.cli.{other}" for other in OTHERS}
    assert not loaded & {"http.server", "redis", "croniter"}


def test_the_list_of_commands_says_what_each_does() -> None:
    context = click.Context(cli, info_name="headrace")
    names = cli.list_commands(context)
    lines = cli.get_help(context).partition("Commands:")[2].splitlines()
    told = dict(line.strip().split(maxsplit=1) for line in lines if line.startswith("  "))
    assert set(names) <= set(told)
    assert names == sorted(names)

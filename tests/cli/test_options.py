"""Options, their variables, and the light start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import headrace
from headrace.cli import cli as root
from headrace.cli.quantities import duration
from headrace.cli.worker import weights, worker
from headrace.cli.worker_options import GROUPS
from tests.cli.conftest import Cli
from tests.support.until import patience

UNSET_BY_VARIABLE = {"--force", "--yes", "--dry-run", "--all", "--help", "--version"}


def options(command: click.Command) -> Iterator[tuple[click.Command, click.Option]]:
    """Yield every option of a command and of those below it."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield command, parameter
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options(below)


def test_every_option_has_a_variable_but_those_that_confirm_or_widen() -> None:
    found = list(options(root))
    assert len(found) > 50
    for command, option in found:
        long = max(option.opts, key=len)
        if long in UNSET_BY_VARIABLE:
            assert not option.allow_from_autoenv, (command.name, long)
        elif option.envvar:
            assert option.show_envvar, (command.name, long)
        else:
            # The documented rule: HEADRACE_<COMMAND>_<OPTION>.
            assert option.allow_from_autoenv
            assert option.name == long.removeprefix("--").replace("-", "_"), (command.name, long)


def test_every_command_and_option_says_what_it_is() -> None:
    for command, option in options(root):
        assert command.help, command.name
        assert option.help, (command.name, option.opts)


def test_an_option_can_come_from_its_variable(here: Cli) -> None:
    assert here("enqueue", "add", "-q", "x", env={"HEADRACE_ENQUEUE_ID": "from-env"}).code == 0
    listed = here("job", "list", env={"HEADRACE_OUTPUT": "json"}).json
    assert [job["id"] for job in listed] == ["from-env"]


def test_a_deletion_is_not_confirmed_by_a_variable(here: Cli) -> None:
    assert here("enqueue", "add", "-q", "x").code == 0
    ran = here("queue", "purge", "x", env={"HEADRACE_QUEUE_PURGE_YES": "1", "HEADRACE_YES": "1"})
    assert ran.code == 2


def test_the_url_is_the_option_then_headraces_variable_then_the_common_one(
    here: Cli, environment: dict[str, str]
) -> None:
    good, bad = environment["HEADRACE_REDIS_URL"], "redis://127.0.0.1:1"
    assert here("health", "--url", good, env={"HEADRACE_REDIS_URL": bad}).code == 0
    assert here("health", env={"REDIS_URL": bad}).code == 0
    assert here("health", env={"HEADRACE_REDIS_URL": "", "REDIS_URL": good}).code == 0


def test_tenants_do_not_see_each_other(here: Cli) -> None:
    here("enqueue", "add", "-q", "mine", "--tenant", "a")
    assert [queue["queue"] for queue in here("queue", "list", "--tenant", "a", "-o", "json").json]
    assert here("queue", "list", "--tenant", "b", "-o", "json").json == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15", 15),
        ("1.5", 1.5),
        ("500ms", 0.5),
        ("30s", 30),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86400),
    ],
)
def test_a_duration_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5 weeks", "-1", "1h30m", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        duration(text)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ((), None),
        (("a",), {"a": 1}),
        (("critical=3,default=1",), {"critical": 3, "default": 1}),
        (("critical=3", "default"), {"critical": 3, "default": 1}),
    ],
)
def test_queues_are_names_with_weights(said: tuple[str, ...], found: dict[str, int] | None) -> None:
    assert weights(said) == found


@pytest.mark.parametrize("text", ["a=", "a=high", "a=1.5", "a=-1"])
def test_a_weight_is_a_whole_number(text: str) -> None:
    with pytest.raises(click.UsageError):
        weights((text,))


@pytest.mark.usefixtures("redis_url")
def test_version_is_the_packages(cli: Cli) -> None:
    assert cli("version").out.startswith(f"headrace {headrace.__version__} (Python 3.")
    assert cli("version", "-o", "json").json["headrace"] == headrace.__version__


@pytest.mark.usefixtures("redis_url")
def test_f32_the_version_and_the_help_are_where_one_looks_for_them(here: Cli) -> None:
    """F32: as options, as other programs have them, and as commands."""
    said = here("version").out
    assert [here(word).out for word in ("--version", "-V")] == [said, said]
    assert here("help").out == here("--help").out
    assert here("help", "queue", "list").out == here("queue", "list", "--help").out
    ran = here("help", "queue", "lost")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: there is no command 'queue lost' (see headrace queue --help)\n"


@pytest.mark.usefixtures("redis_url")
def test_p15_the_workers_many_options_stand_in_groups(here: Cli) -> None:
    """P15: what one looks for is found by its heading."""
    known = {parameter.name for parameter in worker.params}
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(set(grouped)) == len(grouped)
    assert known - {"path", *grouped} == set()
    shown = here("worker", "--help").out
    headings = [*GROUPS, "Other options"]
    assert [line[:-1] for line in shown.splitlines() if line[:-1] in headings] == headings
    assert all(max(parameter.opts, key=len) in shown for parameter in worker.params[1:])
    assert shown.count("[MODULE:ATTR]") == 1  # in the usage, and no option


def test_f39_what_is_missing_is_named_as_pip_knows_it() -> None:
    """F39: an extra of a package that pip can't find is no help."""
    sources = (Path(headrace.__file__).parent).rglob("*.py")
    assert not [path for path in sources if "pip install 'headrace[" in path.read_text()]


@pytest.mark.usefixtures("redis_url")
def test_help_needs_no_server(here: Cli) -> None:
    for words in ((), ("job",), ("worker",), ("queue", "purge")):
        ran = here(*words, "--help", env={"HEADRACE_REDIS_URL": "redis://127.0.0.1:1"})
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("Usage: headrace")


def test_the_command_line_adds_little_to_the_package_itself() -> None:
    # Time is too noisy to test: what is imported decides it.
    script = "import sys, headrace; a = set(sys.modules); import headrace.cli; "
    script += "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - a}))"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(60),
    )
    heavy = {"uvloop", "rich", "litestar", "jinja2", "pydantic", "multiprocessing"}
    assert not heavy & set(ran.stdout.split())


def test_what_only_process_slots_need_is_not_imported_without_them() -> None:
    script = "import sys, headrace, headrace.cli; headrace.Worker(headrace.App(), ['default']); "
    script += "print('multiprocessing' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(60),
    )
    assert ran.stdout == "False\n"

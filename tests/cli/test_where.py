"""Which storage and which tenant a command means, and how it says where it has looked."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from headrace.cli import cli as root
from tests.cli.conftest import Cli

ELSEWHERE = "someone-elses"
NOWHERE_URL = "redis://127.0.0.1:1"


@pytest.fixture
def app(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Return variables that name an app with URL and tenant in its code, and others beside it."""
    url, tenant = environment["HEADRACE_REDIS_URL"], environment["HEADRACE_TENANT"]
    (tmp_path / "said_app.py").write_text(
        "from headrace import App\n"
        f"app = App({url!r}, tenant={tenant!r})\n"
        "@app.task(queue='mail')\n"
        "async def send(): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "said_app", raising=False)
    return {
        "HEADRACE_APP": "said_app",
        "PYTHONPATH": str(tmp_path),
        "HEADRACE_URL": NOWHERE_URL,
        "HEADRACE_TENANT": ELSEWHERE,
    }


def test_f11_a_worker_serves_the_tenant_of_its_code_whatever_the_environment_says(
    cli: Cli, app: dict[str, str]
) -> None:
    """F11: the variable is there for commands that know no app, and moves no worker."""
    assert cli("enqueue", "said_app.send", "--id", "one", env=app).code == 0
    ran = cli("worker", "--burst", "--log-level", "error", env=app)
    assert ran.code == 0, ran
    assert cli("job", "show", "one", "-o", "json", env=app).json["state"] == "completed"


def test_f11_looking_takes_an_app_and_what_its_code_says(here: Cli, app: dict[str, str]) -> None:
    """F11: who looks sees what the app's workers see, without a variable that says it again."""
    assert here("enqueue", "said_app.send", "--id", "one", env=app).code == 0
    for words in (("job", "list"), ("queue", "list"), ("queue", "stats", "mail")):
        assert "mail" in here(*words, env=app).out
    without = {"HEADRACE_TENANT": ELSEWHERE}
    assert "mail" in here("job", "list", "-A", "said_app", env=without).out
    ran = here("job", "list", "-A", "said_app", "--tenant", "other", env=without)
    assert (ran.code, ran.out) == (0, "")


def test_f11_every_command_that_looks_or_steers_takes_an_app() -> None:
    """F11: all but those that know no storage, and `health`, which a probe runs."""
    without = {"health", "help", "next", "version"}
    without |= {"baseline", "compact", "failures", "plot", "retain", "rollup"}  # of an archive
    context = click.Context(root)
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        for below in getattr(command, "commands", {name: command}).values():
            takes = any("--app" in parameter.opts for parameter in below.params)
            assert takes != (below.name in without), (name, below.name)


@pytest.mark.parametrize(
    ("words", "noun"),
    [
        (("job", "list"), "no such jobs in"),
        (("dead", "list"), "no such dead letters in"),
        (("queue", "list"), "no queues yet in"),
        (("workers",), "no workers in"),
        (("doctor", "--repair"), "no queues in"),
        (("job", "show", "x"), "no job 'x' in any queue of"),
        (("job", "cancel", "x"), "no job 'x' in any queue of"),
    ],
)
def test_f11_that_there_are_none_names_tenant_and_place(
    here: Cli, environment: dict[str, str], words: tuple[str, ...], noun: str
) -> None:
    """F11: an empty answer is mostly one of the wrong place."""
    place = environment["HEADRACE_REDIS_URL"].partition("?")[0]
    where = f"{noun} tenant {environment['HEADRACE_TENANT']!r} at {place}"
    assert where in here(*words).err


def test_f27_headrace_url_is_the_variable_and_the_older_one_stays(
    here: Cli, environment: dict[str, str]
) -> None:
    """F27: the storage need not be Redis, so neither does its name."""
    good = environment["HEADRACE_REDIS_URL"]
    for env in (
        {"HEADRACE_URL": good, "HEADRACE_REDIS_URL": NOWHERE_URL, "REDIS_URL": NOWHERE_URL},
        {"HEADRACE_REDIS_URL": good, "REDIS_URL": NOWHERE_URL},
    ):
        assert here("health", env=env).code == 0
        assert here("enqueue", "t", "-q", "x", env=env).code == 0
    assert "Where the jobs are: redis://" in here("queue", "list", "--help").out

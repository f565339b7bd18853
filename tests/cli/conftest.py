"""The real command line as a process, on an empty storage with a tenant of the test's own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.cli import main
from headrace.storage.sqlite.engine.database import open_database
from headrace.storage.sqlite.engine.location import place_of
from tests.support.processes import ROOT
from tests.support.until import patience

APP = "tests.apps.cli_app"
LIMIT_S = 60


class Ran:
    """How a command ended, and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"<exit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}>"

    @property
    def json(self) -> Any:
        """The one document that it printed."""
        return json.loads(self.out)


Cli = Callable[..., Ran]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what has an environment on Redis and in a directory; on Redis alone what asks for it.

    Where a test asks for an event loop, Redis has both and the directory one.
    """
    names = set(metafunc.fixturenames)
    is_said = any(
        "cli_url" in mark.args for mark in metafunc.definition.iter_markers("parametrize")
    )
    if "cli_url" not in names or is_said:
        return
    is_redis = names & {"redis_server", "redis_url"}
    kinds = ["redis"] if is_redis else ["redis", "file"]
    if "loop" not in names:
        metafunc.parametrize("cli_url", kinds, indirect=True)
        return
    loops = {"redis": ("asyncio", "uvloop"), "file": ("uvloop",)}
    pairs = [(kind, loop) for kind in kinds for loop in loops[kind]]
    metafunc.parametrize(("cli_url", "loop"), pairs, indirect=["cli_url"])


def embedded_url(directory: Path) -> str:
    """Return the address of an embedded storage that is there: what only looks makes none."""
    url = f"file://{directory}/data"
    open_database(place_of(url)).close()
    return url


@pytest.fixture
def cli_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a storage that processes can share."""
    if request.param == "file":
        return embedded_url(tmp_path)
    url: str = request.getfixturevalue("redis_url")
    return url


@pytest.fixture
def environment(cli_url: str) -> dict[str, str]:
    """Return variables that point a command at an empty tenant."""
    return {"HEADRACE_REDIS_URL": cli_url, "HEADRACE_TENANT": f"cli-{secrets.token_hex(6)}"}


@pytest.fixture
def cli(environment: dict[str, str]) -> Cli:
    """Return what runs ``headrace`` with some words, no terminal, and waits for its end."""

    def run(*words: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Ran:
        told = ("HEADRACE", "NO_COLOR", "FORCE_COLOR")
        clean = {
            name: value for name, value in os.environ.items() if not any(t in name for t in told)
        }
        process = subprocess.run(
            [sys.executable, "-m", "headrace", *words],
            cwd=ROOT,
            env={**clean, **environment, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=patience(LIMIT_S),
            check=False,
        )
        return Ran(process.returncode, process.stdout, process.stderr)

    return run


@pytest.fixture
def here(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Cli:
    """Return what runs the same in this process, for many small cases: a process takes 0.4 s."""
    # What main itself sets is undone with these.
    monkeypatch.setenv("HEADRACE_TRACEBACK", "")
    monkeypatch.syspath_prepend(str(ROOT))
    for name in ("HEADRACE_APP", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    # An app takes its address from the environment when its module is imported.
    monkeypatch.delitem(sys.modules, APP, raising=False)

    def run(*words: str, env: Mapping[str, str] | None = None) -> Ran:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["headrace", *words])
            for name, value in {**environment, **(env or {})}.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run

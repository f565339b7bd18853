"""The real command line as a process, on the session's server with a tenant of the test's own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from headrace.cli import main
from tests.support.processes import ROOT

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


@pytest.fixture
def environment(redis_url: str) -> dict[str, str]:
    """Return variables that point a command at an empty tenant."""
    return {"HEADRACE_REDIS_URL": redis_url, "HEADRACE_TENANT": f"cli-{secrets.token_hex(6)}"}


@pytest.fixture
def cli(environment: dict[str, str]) -> Cli:
    """Return what runs ``headrace`` with some words, no terminal, and waits for its end."""

    def run(*words: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Ran:
        clean = {name: value for name, value in os.environ.items() if "HEADRACE" not in name}
        process = subprocess.run(
            [sys.executable, "-m", "headrace", *words],
            cwd=ROOT,
            env={**clean, **environment, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
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
    monkeypatch.delenv("HEADRACE_APP", raising=False)

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

"""The environments that benchmarks run in: what ours is made of, and when one is made again.

Nothing is fetched here.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.environments import DEVELOPMENT, OURS, environment, requirements
from tests.support.processes import ROOT

# Starts what a user imports, and says what of the tests and their tools came with it.
LOADED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(sorted({name.partition(".")[0] for name in sys.modules} & {"tests", "psutil", "pytest"}))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    # What has to be installed can't be, so that whoever tries to is found out.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path


def make(folder: Path, name: str, made_from: list[str]) -> str:
    """Make an environment by hand, and return its interpreter."""
    python = folder / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / name / "requirements").write_text("\n".join(made_from))
    return str(python)


def test_ours_is_made_of_this_checkout_and_what_it_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    checkout, *required = requirements(OURS)
    assert checkout == f"headrace {version(OURS)} from {ROOT}"
    assert required[:-1] == project["dependencies"]
    assert required[-1].startswith("uvloop")


def test_an_environment_says_which_versions_it_has() -> None:
    packages = ("redis", "headrace", "uvloop")
    assert DEVELOPMENT.versions(*packages) == {name: version(name) for name in packages}
    assert DEVELOPMENT.version == version("headrace")


@pytest.mark.parametrize("name", [OURS, "huey"])
def test_an_environment_that_was_made_from_the_same_is_used_as_it_is(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    python = make(folder, name, requirements(name))
    assert environment(name).python == python
    assert capsys.readouterr().err == ""


def test_an_environment_that_was_made_from_something_else_is_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(folder, OURS, requirements(OURS)[:-1])
    with pytest.raises(subprocess.CalledProcessError):
        environment(OURS)
    assert capsys.readouterr().err == f"installing {', '.join(requirements(OURS))}\n"
    # What could not be finished does not count as made.
    assert not (folder / OURS / "requirements").exists()


@pytest.mark.parametrize(
    "module",
    ["benchmarks.workload", "benchmarks.growth.workload", "benchmarks.peers.headrace_peer"],
)
def test_what_a_measured_worker_imports_needs_no_package_of_development(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, module], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

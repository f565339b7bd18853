"""Both type checkers see in the public API what its users are promised."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
READ_BY_THEM = ("calls.py", "handlers.py", "schedules.py", "sync_calls.py")
READ = [str(Path(__file__).with_name(name)) for name in READ_BY_THEM]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    # basedpyright looks for the package in the environment of the first Python on the path.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_mypy_finds_every_mistake_and_no_other(tmp_path: Path) -> None:
    done = run("mypy", "--strict", "--cache-dir", str(tmp_path), *READ)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_every_mistake_and_no_other(tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    settings = {
        "include": READ,
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT / "src")],
        # Its own comments alone count, and each must be of use.
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    config.write_text(json.dumps(settings))
    done = run("basedpyright", "--project", str(config), "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_symbol_has_a_type() -> None:
    command = ("--verifytypes", "headrace", "--ignoreexternal", "--outputjson")
    done = run("basedpyright", *command)
    report = json.loads(done.stdout)["typeCompleteness"]
    # The command line is a program and not for import. Django has no types, and those of pyspark
    # are there only where it is installed.
    untyped = [
        symbol["name"]
        for symbol in report["symbols"]
        if symbol["isExported"]
        and not symbol["isTypeKnown"]
        and not symbol["name"].startswith(("headrace.cli", "headrace.django", "headrace.spark"))
    ]
    assert untyped == []
    assert report["exportedSymbolCounts"]["withKnownType"] > 1_000

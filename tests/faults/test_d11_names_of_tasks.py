"""A task of the main program goes by the name under which a worker imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.until import patience

PROGRAM = """
from headrace import App

app = App("memory://")

@app.task
async def send() -> None: ...

print(send.name)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with the program as a file, a package and a folder."""
    (tmp_path / "mail.py").write_text(PROGRAM)
    for name in ("pkg", "plain"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__main__.py").write_text(PROGRAM)
    (tmp_path / "pkg" / "__init__.py").touch()
    return tmp_path


def run(folder: Path, words: Sequence[str], stdin: str = "") -> tuple[str, str]:
    """Run Python and return what it printed."""
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=True,
    )
    return ran.stdout, ran.stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["mail.py"], "mail.send"),
        (["-m", "mail"], "mail.send"),
        (["pkg"], "pkg.__main__.send"),
        (["plain"], "plain.__main__.send"),
        (["-m", "pkg"], "pkg.__main__.send"),
        (["-m", "cProfile", "mail.py"], "mail.send"),
        (["-m", "cProfile", "-m", "mail"], "mail.send"),
        (["-m", "trace", "--count", "--coverdir", "counts", "mail.py"], "mail.send"),
        (["-c", "import runpy; runpy.run_path('mail.py', run_name='__main__')"], "mail.send"),
        (["-c", "import runpy; runpy.run_module('mail', run_name='__main__')"], "mail.send"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_file_gives_its_own_name(folder: Path, words: list[str], name: str) -> None:
    out, err = run(folder, words)
    assert out.splitlines()[0] == name
    assert "Warning" not in err


@pytest.mark.parametrize("words", [[], ["-"], ["-c", PROGRAM]], ids=["stdin", "dash", "command"])
def test_a_program_in_no_file_is_told_that_no_worker_can_import_it(
    folder: Path, words: list[str]
) -> None:
    out, err = run(folder, words, stdin=PROGRAM)
    assert out == "__main__.send\n"
    assert "UserWarning: the task __main__.send is in no file" in err


def test_a_name_of_ones_own_needs_no_file(folder: Path) -> None:
    program = PROGRAM.replace("@app.task", "@app.task(name='mail.send')")
    assert run(folder, ["-"], stdin=program) == ("mail.send\n", "")


def test_a_decorated_function_is_named_by_its_own_file(folder: Path) -> None:
    (folder / "wrap.py").write_text(
        "import functools\n"
        "def wrap(function):\n"
        "    @functools.wraps(function)\n"
        "    async def wrapped(): return await function()\n"
        "    return wrapped\n"
    )
    program = PROGRAM.replace("@app.task", "@app.task\n@__import__('wrap').wrap")
    (folder / "decorated.py").write_text(program)
    assert run(folder, ["decorated.py"])[0] == "decorated.send\n"

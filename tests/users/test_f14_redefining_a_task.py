"""F14: at a prompt and in a notebook a task that is defined again replaces the one before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App, UsageError
from tests.support.until import patience

FIRST = """\
from headrace import App
app = App("memory://")
@app.task
def answer() -> int: return 1

old = answer
"""

AGAIN = """\
@app.task(queue="other")
def answer() -> int: return 2

print("name", answer.name)
print("now", answer(), app.tasks[answer.name] is answer, answer.settings.queue)
print("before", old())
"""

EXPECTED = ["name __main__.answer", "now 2 True other", "before 1"]


def run(words: list[str], *, typed: str, folder: Path) -> tuple[list[str], str]:
    """Return the lines that a Python printed which is typed to, and its errors."""
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    # The prompt of asyncio's console is on the output, before what is printed.
    return [line.rpartition(">>> ")[2] for line in ran.stdout.splitlines()], ran.stderr


@pytest.mark.parametrize("words", [["-i"], ["-m", "asyncio"]], ids=["python", "asyncio"])
def test_f14_at_a_prompt_the_last_definition_counts(words: list[str], tmp_path: Path) -> None:
    """F14: its name is `__main__.answer`, of which a warning says who can run it."""
    lines, errors = run(words, typed=FIRST + AGAIN, folder=tmp_path)
    assert [line for line in lines if line in EXPECTED] == EXPECTED
    assert "UsageError" not in errors
    assert "the task __main__.answer is in no file" in errors


NOTEBOOK = """
import sys

cells = {cells!r}
main = dict(__name__="__main__")  # as IPython's, it has no file
for number, cell in enumerate(cells):
    # A kernel names cells by files that are not there.
    exec(compile(cell, f"/tmp/ipykernel_1/{{number}}.py", "exec"), main)
"""


def test_f14_in_a_notebook_a_cell_can_be_run_again(tmp_path: Path) -> None:
    """F14: also one that has been changed."""
    kernel = tmp_path / "kernel.py"
    kernel.write_text(NOTEBOOK.format(cells=[FIRST, AGAIN, AGAIN]))
    lines, errors = run([str(kernel)], typed="", folder=tmp_path)
    assert lines == 2 * EXPECTED
    assert "Error" not in errors


def test_f14_a_module_that_is_reloaded_at_a_prompt_replaces_its_tasks(tmp_path: Path) -> None:
    """F14: as IPython's autoreload does."""
    (tmp_path / "shop.py").write_text("from headrace import App\napp = App('memory://')\n")
    (tmp_path / "mail.py").write_text(
        "from shop import app\n@app.task\ndef send() -> str: return 'sent'\n"
    )
    typed = "import importlib, mail, shop\nmail = importlib.reload(mail)\nprint(*shop.app.tasks)\n"
    assert run(["-i"], typed=typed, folder=tmp_path)[0] == ["mail.send"]
    lines, errors = run(["-c", typed], typed="", folder=tmp_path)
    assert lines == []
    assert "the task name 'mail.send' is taken" in errors


def test_f14_in_a_program_a_name_is_taken_once() -> None:
    """F14: two functions of one name in a module are a mistake, and so are two of one `name=`."""
    app = App("memory://f14")

    def define(number: int) -> None:
        @app.task
        def answer() -> int:
            return number

    define(1)
    with pytest.raises(UsageError, match=r"answer' is taken: pass another name="):
        define(2)

    def other() -> None: ...

    app.task(name="x")(other)
    with pytest.raises(UsageError, match="'x' is taken"):
        app.task(name="x")(define)

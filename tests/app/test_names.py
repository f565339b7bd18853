"""What an app is called, by which its releases know their schedules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App, InvalidOption


def test_an_app_is_called_by_its_module() -> None:
    assert App("memory://").name == __name__
    assert App[None]("memory://").name == __name__
    assert App("memory://", name="shop").name == "shop"


def test_the_app_of_the_main_program_is_called_by_its_file(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text("from headrace import App\nprint(App('memory://').name)\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "shop"


def test_a_name_of_an_app_that_is_none() -> None:
    with pytest.raises(InvalidOption, match=r"app name 'a\\nb' is not valid"):
        App("memory://", name="a\nb")

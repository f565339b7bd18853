"""P13: who names a file where a module is meant is told the module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("shop/jobs.py", "shop.jobs"),
        ("./shop/jobs.py:app", "shop.jobs:app"),
        ("shop/jobs", "shop.jobs"),
        ("shop/__init__.py", "shop"),
        ("jobs.py:app", "jobs:app"),
    ],
)
def test_p13_the_module_of_a_file_is_proposed(tmp_path: Path, path: str, meant: str) -> None:
    ran = Project(tmp_path, {}).headrace("worker", path)
    assert ran.returncode == 4
    assert ran.stderr == (
        f"Error: '{path}' is a file, and an app is named by its module: use {meant}\n"
    )


def test_p13_it_counts_from_the_folder_on_the_path_that_is_nearest(tmp_path: Path) -> None:
    ran = Project(tmp_path, {}).headrace("worker", "src/shop.py", PYTHONPATH=f"{tmp_path}/src")
    assert ran.stderr.endswith("use shop\n")

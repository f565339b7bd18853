"""The program of docs/project-layout.md, file by file, runs as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.support.project import Project

PAGE = (ROOT / "docs" / "project-layout.md").read_text()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return the page's project, on a storage in its folder."""
    files = dict(re.findall(r"^```python no-run\n# (\S+\.py)\n(.*?)^```$", PAGE, re.M | re.S))
    assert len(files) == PAGE.count("```python"), "each begins with the name of its file"
    files["shop/app.py"] = files["shop/app.py"].replace('"redis://localhost:6379", ', "")
    return Project(tmp_path, {**files, "shop/__init__.py": "", "shop/tasks/__init__.py": ""})


def test_the_program_of_several_modules_runs(project: Project) -> None:
    app = ("--app", "shop.app:app")
    assert project.headrace("worker", "shop.app:app", "--check").stderr == ""
    task = ("shop.tasks.billing.bill", "--args", '["Ada"]')
    assert project.headrace("enqueue", *task, *app).returncode == 0
    ran = project.headrace("worker", *app, "--burst")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("outcome=completed") == 2

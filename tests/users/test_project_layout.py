"""The program of docs/project-layout.md, file by file, runs as the page says."""

from __future__ import annotations

import json
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
    assert enqueued(project, "shop.tasks.billing.bill", "Ada", *app)
    ran = project.headrace("worker", *app, "--burst")
    assert ran.returncode == 0, ran.stderr
    assert project.completed() == ["shop.tasks.billing.bill", "shop.tasks.mail.send"]


def test_the_program_with_a_blueprint_runs(project: Project) -> None:
    app = ("--app", "shop.app:app", "--import", "shop.full")
    assert enqueued(project, "shop.alerts.page_somebody", "the shop is down", *app)
    ran = project.headrace("worker", *app, "--burst")
    assert ran.returncode == 0, ran.stderr
    assert project.completed() == ["shop.alerts.page_somebody"]


def enqueued(project: Project, task: str, argument: str, *words: str) -> bool:
    ran = project.headrace("enqueue", task, "--args", json.dumps([argument]), *words)
    return ran.returncode == 0

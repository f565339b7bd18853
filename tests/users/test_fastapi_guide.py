"""The program of docs/guides/fastapi.md, whose own tests pass, and whose worker runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.support.project import Project
from tests.support.until import patience
from tests.testing.test_plugin import run_pytest

PAGE = (ROOT / "docs" / "guides" / "fastapi.md").read_text()

EMBEDDED = """
from fastapi.testclient import TestClient
from small import api
from tasks import app, place, Order

async def ask():
    async with app:
        return await place.enqueue_and_wait(Order(number=7, email="a@b.c", products=[]))

with TestClient(api) as client:
    print(client.portal.call(ask))
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return the page's program; its blocks of one name are one file."""
    blocks = re.findall(r"^```python no-run\n# (\S+\.py)\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(blocks) == PAGE.count("```python"), "each begins with the name of its file"
    files: dict[str, str] = {}
    for name, source in blocks:
        files[name] = f"{files.get(name, '')}\n{source}"
    return Project(tmp_path, files)


def test_the_tests_of_the_page_pass(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\n")
    output, counts = run_pytest(project.folder)
    tests = (project.folder / "test_web.py").read_text().count("def test_")
    assert counts == {"passed": tests}, output


def test_a_worker_of_the_page_would_start(project: Project) -> None:
    ran = project.headrace("worker", "tasks:app", "--check")
    assert ran.returncode == 0, ran.stderr


def test_a_worker_lives_in_the_web_process_of_the_page(project: Project) -> None:
    project.write("embedded.py", EMBEDDED)
    ran = subprocess.run(
        [sys.executable, "embedded.py"],
        cwd=project.folder,
        env={"HEADRACE_URL": project.url, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "placed 7 for nobody\n"

"""The notebook of docs/guides/notebooks.md runs, cell by cell, as a kernel runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT
from tests.support.until import patience

PAGE = (ROOT / "docs" / "guides" / "notebooks.md").read_text()

KERNEL = """
import ast, asyncio, builtins, inspect, json, sys
sys.ps1 = "In: "
builtins.__IPYTHON__ = True

async def main(cells):
    namespace = sys.modules["__main__"].__dict__
    for cell in cells:
        code = compile(cell, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ran = eval(code, namespace)
        if inspect.iscoroutine(ran):
            await ran

asyncio.run(main(json.load(sys.stdin)))
print("ran")
"""


def test_every_cell_of_the_notebook_runs(tmp_path: Path) -> None:
    cells = re.findall(r"^```python no-run\n# cell\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(cells) == PAGE.count("```python"), "each is a cell"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", KERNEL],
        cwd=tmp_path,
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "ran\n"), ran.stderr

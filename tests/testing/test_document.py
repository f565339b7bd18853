"""The tests in the document about testing pass."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.processes import ROOT
from tests.testing.test_plugin import run_pytest

DOCUMENT = ROOT / "docs" / "testing.md"


def test_all_tests_of_the_document_pass(tmp_path: Path) -> None:
    text = DOCUMENT.read_text()
    files = re.findall(r"^```python no-run\n# (\w+\.py)\n(.*?)^```$", text, re.M | re.S)
    assert len(files) == text.count("```python"), "each begins with the name of its file"
    for name, source in files:
        (tmp_path / name).write_text(source)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    output, counts = run_pytest(tmp_path, "-o", "asyncio_mode=auto")
    assert counts == {"passed": sum(source.count("def test_") for _, source in files)}, output

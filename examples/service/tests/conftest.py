"""What the tests share: an empty data folder."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the shop's data folder, which is this test's alone."""
    monkeypatch.setenv("SHOP_DATA", str(tmp_path))
    return tmp_path

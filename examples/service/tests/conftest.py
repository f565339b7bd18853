"""What the tests share: an empty data folder, jobs in memory, and the web service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from headrace import App
from headrace.testing import Kit

from shop.app import app
from shop.web.main import api


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the shop's data folder, which is this test's alone."""
    monkeypatch.setenv("SHOP_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def headrace_app() -> App[Any]:
    """Return the app of which `headrace_kit` takes the storage and the clock."""
    return app


@pytest.fixture
def client(headrace_kit: Kit) -> Iterator[TestClient]:
    """Return a client of the web service, whose jobs wait until the test runs them."""
    with TestClient(api) as client:
        yield client

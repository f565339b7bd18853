"""Public names are functions, whatever was imported before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headrace.spark import pipeline
from headrace.spark.pipeline import layout
from headrace.spark.public import on_first_use


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a package that has a module of its function's name."""
    folder = tmp_path / "lazy_pump"
    folder.mkdir()
    names = "{'pump': 'pump'}"
    (folder / "__init__.py").write_text(
        f"from {on_first_use.__module__} import on_first_use\non_first_use(__name__, {names})\n"
    )
    (folder / "pump.py").write_text("def pump(): return 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("lazy_pump", "lazy_pump.pump"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "lazy_pump"


@pytest.mark.parametrize("before", ["", "import lazy_pump.pump", "from lazy_pump.pump import pump"])
def test_a_function_wins_over_the_module_of_its_name(before: str, package: str) -> None:
    found: dict[str, int] = {}
    program = f"{before}\nimport {package}\nfrom {package} import pump\n"
    exec(f"{program}both = pump() + {package}.pump()", found)  # noqa: S102 (the program is ours)
    assert found["both"] == 14


def test_what_is_public_is_listed_and_nothing_else_is_there() -> None:
    assert pipeline.events is layout.events
    assert set(pipeline.__all__) <= set(dir(pipeline))
    with pytest.raises(AttributeError, match=r"'headrace.spark.pipeline' has no attribute 'pump'"):
        pipeline.pump  # type: ignore[attr-defined]  # noqa: B018 (it is to fail)

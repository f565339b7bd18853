"""Short runs of the soak on both storages: nothing breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.short import LIMIT_S, soak

pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S + 10)]


def test_nothing_breaks_on_redis(tmp_path: Path) -> None:
    code, said = soak(
        tmp_path, "--storage", "redis", "--jobs", "3000", "--seconds", "25", "--faults", "10"
    )
    assert code == 0, said


def test_nothing_breaks_in_a_directory(tmp_path: Path) -> None:
    code, said = soak(
        tmp_path, "--storage", "file", "--jobs", "1500", "--seconds", "15", "--faults", "6"
    )
    assert code == 0, said

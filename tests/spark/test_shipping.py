"""What executors are sent says what to do where it can't be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark import cloudpickle

from headrace.spark.shipping import Shipped
from tests.spark.support.bare import without_headrace
from tests.support.processes import ROOT


class Parcel(Shipped):
    """As a reader or a writer is."""

    def __init__(self, content: str) -> None:
        self.content = content


def unpacked(pickled: bytes, folder: Path) -> subprocess.CompletedProcess[str]:
    """Unpickle something where a folder comes first on the path."""
    path = folder / "pickled"
    path.write_bytes(pickled)
    program = f"import pickle; print(pickle.load(open({str(path)!r}, 'rb')).content)"
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_the_same_where_the_package_is(tmp_path: Path) -> None:
    assert unpacked(cloudpickle.dumps(Parcel("rows")), tmp_path).stdout == "rows\n"


def test_it_says_what_to_do_where_the_package_is_not(tmp_path: Path) -> None:
    done = unpacked(cloudpickle.dumps(Parcel("rows")), without_headrace(tmp_path / "bare"))
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"ModuleNotFoundError: headrace is not installed for {sys.executable}")
    for way in ("pip install 'headrace[spark-cluster]'", "addPyFile(", "addArtifacts("):
        assert way in last

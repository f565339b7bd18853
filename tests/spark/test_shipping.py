"""What executors are sent says what to do where it can't be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from headrace.spark.options import WriteOptions
from headrace.spark.shipping import Shipped
from headrace.spark.writers import BatchWriter, StreamWriter
from headrace.spark.writing import in_arrow, terms_of
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


@pytest.mark.parametrize("what", ["batch", "stream", "arrow"])
def test_what_writes_is_such(what: str, tmp_path: Path) -> None:
    options = WriteOptions(url="redis://127.0.0.1:1", task="load")
    parcels = {
        "batch": BatchWriter(options, ["id", "payload"]),
        "stream": StreamWriter(options),
        "arrow": in_arrow(options, terms_of(options)),
    }
    done = unpacked(cloudpickle.dumps(parcels[what]), without_headrace(tmp_path / "bare"))
    assert "headrace is not installed for" in done.stderr.splitlines()[-1]


def test_it_says_what_to_do_where_the_package_is_not(tmp_path: Path) -> None:
    done = unpacked(cloudpickle.dumps(Parcel("rows")), without_headrace(tmp_path / "bare"))
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"ModuleNotFoundError: headrace is not installed for {sys.executable}")
    for way in ("with pyarrow beside headrace", "addPyFile(", "addArtifacts("):
        assert way in last

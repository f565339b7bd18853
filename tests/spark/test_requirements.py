"""What is missing or too old is said before Spark starts: with the version, and what to do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyspark
import pytest
from packaging.version import Version

from headrace import MissingRequirement
from headrace.spark import requirements
from tests.support.processes import ROOT


def install(folder: Path, package: str, version: str) -> None:
    """Make a package that stands before the installed one, as pip leaves one behind."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")


def linked(folder: Path, left_out: str) -> Path:
    """Return a folder with all that is installed here but what a pattern fits."""
    for package in Path(pyspark.__file__).parents[1].iterdir():
        if not package.match(left_out):
            (folder / package.name).symlink_to(package)
    return folder


def run(program: str, packages: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that sees nothing but our sources and what is in a folder."""
    path = [str(ROOT / "src"), str(packages)]
    return subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {path}; {program}"],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("package", "version", "check"),
    [("pyspark", "4.0.1", "check_pyspark"), ("pyarrow", "17.0.0", "check_pyarrow")],
)
def test_what_is_too_old_is_refused(
    package: str,
    version: str,
    check: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(tmp_path, package, version)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingRequirement, match=rf"{package} {version} is too old.*pip install"):
        getattr(requirements, check)()


def test_what_is_not_installed_is_said_at_the_first_name(tmp_path: Path) -> None:
    done = run("import headrace.spark; headrace.spark.prepare", linked(tmp_path, "pyspark*"))
    assert done.stderr.splitlines()[-1] == (
        "headrace.errors.MissingRequirement: pyspark 4.1 or newer is not installed: "
        "pip install 'pyspark>=4.1,<5' 'pyarrow>=18'"
    )


def test_a_package_without_metadata_says_its_version_itself(tmp_path: Path) -> None:
    packages = linked(tmp_path, "pyspark-*.dist-info")
    assert run("import headrace.spark; headrace.spark.register", packages).stderr == ""


@pytest.mark.parametrize(
    ("package", "command", "told"),
    [
        ("pyspark", "archive", "pyspark 4.1 or newer is not installed: pip install 'pyspark>=4.1"),
        ("pyarrow", "rollup", "pyarrow 18.0 or newer is not installed: pip install 'pyarrow>=18'"),
        (
            "matplotlib",
            "plot",
            "matplotlib 3.10 or newer is not installed: pip install 'matplotlib",
        ),
    ],
)
def test_a_command_says_what_is_missing(
    package: str, command: str, told: str, tmp_path: Path
) -> None:
    words = ["headrace", "pipeline", command, "archive"]
    program = f"sys.argv = {words}; from headrace.cli import main; main()"
    done = run(program, linked(tmp_path, f"{package}*"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith(f"Error: {told}")


def test_a_command_says_that_java_is_missing(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "pipeline", "rollup", tmp_path],
        env={**environment, "PATH": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith("Error: Spark needs Java 17 or newer, and PATH has no java: ")


@pytest.mark.parametrize(
    ("package", "oldest"), [("pyspark", requirements.PYSPARK), ("pyarrow", requirements.PYARROW)]
)
def test_the_oldest_version_is_the_same_wherever_it_is_said(
    package: str, oldest: tuple[int, int]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    [promised] = re.findall(
        rf"\b{package}>=([0-9.]+)", " ".join([*extras["spark"], *extras["spark-cluster"]])
    )
    makefile = (ROOT / "Makefile").read_text()
    [tried] = re.findall(rf"^OLDEST_SPARK := .*\b{package}==([0-9.]+)", makefile, re.M)
    assert Version(promised) == Version(tried) == Version(".".join(map(str, oldest)))


def test_java_is_looked_for_where_spark_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingRequirement, match=r"JAVA_HOME=.* has no java: install a JRE"):
        requirements.check_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    with pytest.raises(MissingRequirement, match=r"needs Java 17 or newer, and .*11\.0\.2"):
        requirements.check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(MissingRequirement, match="PATH has no java"):
        requirements.check_java()

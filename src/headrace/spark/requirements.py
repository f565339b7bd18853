"""What has to be installed, and how new."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from headrace.errors import MissingRequirement

PYSPARK = (4, 1)
PYARROW = (18, 0)
JAVA = 17
_INSTALLED = {
    "pyspark": "'pyspark>=4.1,<5' 'pyarrow>=18'",
    "pyarrow": "'pyarrow>=18'",
    "matplotlib": "'matplotlib>=3.10'",
}
"""What pip is to install where a package is missing."""

_JAVA_TIMEOUT_S = 20.0


def check_pyspark() -> None:
    """See that pyspark and pyarrow are there, and new enough.

    Raises:
        MissingRequirement: one is not, or is too old.
    """
    _check("pyspark", PYSPARK, also="pyspark-client")
    check_pyarrow()


def check_pyarrow() -> None:
    """See that pyarrow is there, and new enough; executors need no more.

    Raises:
        MissingRequirement: it is not, or is too old.
    """
    _check("pyarrow", PYARROW)


def check_matplotlib() -> None:
    """See that matplotlib is there.

    Raises:
        MissingRequirement: it is not.
    """
    _check("matplotlib", (3, 10))


def check_java() -> None:
    """See that there is a Java that Spark can run on, before it is started.

    Raises:
        MissingRequirement: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME", "")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else "PATH"
    needed = f"Spark needs Java {JAVA} or newer"
    advice = "install a JRE, such as Debian's default-jre-headless, or set JAVA_HOME"
    if java is None:
        raise MissingRequirement(f"{needed}, and {where} has no java: {advice}")
    told = subprocess.run(  # noqa: S603 (the program was just found)
        [java, "-version"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_JAVA_TIMEOUT_S,
        check=False,
    )
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    if found is None or int(found[1]) < JAVA:
        lines = told.stderr.splitlines() or ["nothing"]
        raise MissingRequirement(f"{needed}, and {java} says {lines[0]!r}: {advice}")


def _check(package: str, oldest: tuple[int, int], *, also: str = "") -> None:
    """See that a package is there, perhaps as part of another one, and new enough."""
    found = _version(package) or (_version(also) if also else "")
    least = ".".join(map(str, oldest))
    advice = f"pip install {_INSTALLED[package]}"
    if not found:
        raise MissingRequirement(f"{package} {least} or newer is not installed: {advice}")
    if tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < oldest:
        raise MissingRequirement(f"{package} {found} is too old, {least} is needed: {advice}")


def _version(package: str) -> str:
    with suppress(PackageNotFoundError):
        return version(package)
    # A distribution of Spark has pyspark as a bare directory, which pip knows nothing of.
    with suppress(ImportError):
        return str(getattr(import_module(package), "__version__", ""))
    return ""

"""How programs are run in which every warning is an error, and that find a storage of another's."""

from __future__ import annotations

import os
from pathlib import Path

ALL_IS_AN_ERROR = ["-X", "dev", "-W", "error"]
# Newer Pythons warn of any fork beside a thread.
FORKS_MAY = ["-W", "ignore:This process:DeprecationWarning"]

ACME = '''
"""A storage of somebody else's: it keeps its jobs where the path of the URL says."""

from headrace.storage import Storage, open_storage


def open_acme(url: str, *, allow_eviction: bool) -> Storage:
    return open_storage("file" + url.removeprefix("acme"))
'''


def environment(folder: Path) -> dict[str, str]:
    """Return one in which a distribution in ``folder`` brings a storage for ``acme://``."""
    site = folder / "site"
    metadata = site / "acme-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[headrace.storages]\nacme = acme_storage:open_acme")
    (site / "acme_storage.py").write_text(ACME)
    return {**os.environ, "PYTHONPATH": str(site)}

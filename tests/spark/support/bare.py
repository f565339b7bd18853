"""Python processes that have all that is installed here but headrace, as other hosts may."""

from __future__ import annotations

from pathlib import Path

BLOCK = """\
import os
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "headrace" and VARIABLE in os.environ:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def without_headrace(folder: Path, *, where: str = "PYTHONPATH") -> Path:
    """Fill a folder so that a Python whose ``PYTHONPATH`` it is has no headrace; return it.

    Args:
        folder: a new one.
        where: the variable by which a Python is known that has none.
    """
    folder.mkdir()
    # Python imports a module of this name before anything else.
    (folder / "sitecustomize.py").write_text(BLOCK.replace("VARIABLE", repr(where)))
    return folder

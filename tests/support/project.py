"""A user's project in a folder of its own, and the command line in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.support.until import patience

LIMIT_S = 60


class Project:
    """Source files below a folder, which is the working directory of commands.

    Args:
        folder: an empty one.
        files: each file's text by its path.
    """

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        self.url = f"file://{folder}/data"
        for path, text in files.items():
            self.write(path, text)

    def write(self, path: str, text: str) -> None:
        """Write a file, without the indent that its text has in a test."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))

    def headrace(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run ``headrace`` with some words on a storage in the folder, and wait for its end."""
        clean = {name: value for name, value in os.environ.items() if "HEADRACE" not in name}
        return subprocess.run(
            [sys.executable, "-m", "headrace", *words],
            cwd=self.folder,
            env={**clean, "HEADRACE_REDIS_URL": self.url, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience(LIMIT_S),
            check=False,
        )

    def completed(self) -> list[str]:
        """Return the tasks of the jobs that have completed, sorted."""
        ran = self.headrace("job", "list", "--state", "completed", "-o", "json")
        return sorted(job["task"] for job in json.loads(ran.stdout))

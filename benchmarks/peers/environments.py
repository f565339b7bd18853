"""A virtual environment for each peer, with its latest release and what makes it fast."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec

OURS = "headrace"
FOLDER = Path(__file__).parents[2] / "build" / "peers"
"""Made once a peer; ``make clean`` makes room for newer releases."""
REQUIREMENTS = {
    "saq": ["saq[redis,hiredis]", "uvloop", "typing_extensions"],  # it forgets to require the last
    "streaq": ["streaq", "orjson", "uvloop"],
    "taskiq": ["taskiq", "taskiq-redis", "orjson", "redis[hiredis]", "uvloop"],
    "arq": ["arq", "redis[hiredis]", "uvloop"],
    "pydocket": ["pydocket", "redis[hiredis]", "uvloop"],
    "rq": ["rq", "redis[hiredis]"],
    "dramatiq": ["dramatiq[redis]", "redis[hiredis]"],
    "huey": ["huey", "redis[hiredis]"],
    "celery": ["celery[redis]", "redis[hiredis]"],
    "bullmq": ["bullmq", "redis[hiredis]", "uvloop"],
}
"""What pip installs; the first is the peer itself. uvloop is for those that run on asyncio."""
NAMES = (OURS, *REQUIREMENTS)
VERSION_PROGRAM = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


class Environment(msgspec.Struct, frozen=True):
    """An interpreter that has one peer.

    Attributes:
        name: of the adapter, without ``_peer``.
        python: the interpreter.
        version: the peer's.
    """

    name: str
    python: str
    version: str


def environment(name: str) -> Environment:
    """Return a peer's environment, made if it is missing or was made from other requirements.

    Raises:
        subprocess.CalledProcessError: pip could not install it.
    """
    if name == OURS:
        return Environment(name, sys.executable, version(OURS))
    folder = FOLDER / name
    python = folder / "bin" / "python"
    asked, made = "\n".join(REQUIREMENTS[name]), folder / "requirements"
    if not made.exists() or made.read_text() != asked:
        print(f"installing {', '.join(REQUIREMENTS[name])}", file=sys.stderr, flush=True)
        run(sys.executable, "-m", "venv", "--clear", str(folder))
        pip = (str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check")
        run(*pip, *REQUIREMENTS[name])
        made.write_text(asked)
    package = REQUIREMENTS[name][0].partition("[")[0]
    return Environment(name, str(python), run(str(python), "-c", VERSION_PROGRAM, package).strip())


def run(*command: str) -> str:
    """Run a command to its end and return what it printed."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

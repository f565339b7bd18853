"""A virtual environment for each job queue that is measured: what a user of it installs, no more.

A peer gets its latest release and what makes it fast, headrace this checkout. Tools of development
stay outside: what they bring along, such as rich, which structlog loads where it finds it, would
be in the figures.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from headrace import __version__

OURS = "headrace"
EXTRA = "uvloop"
ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "environments"
"""Made once each; ``make clean`` makes room for newer releases."""
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
"""What pip installs of each peer, by the name of its package; uvloop is for those on asyncio."""
NAMES = (OURS, *REQUIREMENTS)
"""Adapters of the comparison of all."""
SYNC_NAMES = ("headrace_sync", "headrace_portal", "huey", "rq", "dramatiq")
"""Adapters of the comparison of those that enqueue without an event loop."""
FAIRNESS_NAMES = ("headrace_fair", OURS, "arq", "saq", "bullmq")
"""Adapters of the comparison of how long a few jobs wait behind many."""
VERSIONS_PROGRAM = """
import sys
from importlib.metadata import version
print(*map(version, sys.argv[1:]), sep="\\n")
"""


class Environment(msgspec.Struct, frozen=True):
    """An interpreter that has one job queue.

    Attributes:
        package: of the queue.
        python: the interpreter.
        adapter: the module that drives it, without ``_peer``.
    """

    package: str
    python: str
    adapter: str

    def versions(self, *packages: str) -> dict[str, str]:
        """Return the versions of packages that are installed there.

        Raises:
            subprocess.CalledProcessError: one of them is not.
        """
        printed = run(self.python, "-c", VERSIONS_PROGRAM, *packages)
        return dict(zip(packages, printed.split(), strict=True))

    @property
    def version(self) -> str:
        """The queue's own version."""
        return self.versions(self.package)[self.package]


DEVELOPMENT = Environment(OURS, sys.executable, OURS)
"""The interpreter that runs this: for what needs packages of development, and for tests."""


@cache
def ours() -> Environment:
    """Return the environment in which headrace is measured, looked for once in a run."""
    return environment(OURS)


def environment(name: str) -> Environment:
    """Return a queue's environment, made if it is missing or was made from other requirements.

    Args:
        name: of an adapter, which begins with its package.

    Raises:
        subprocess.CalledProcessError: pip could not install it.
    """
    package = name.partition("_")[0]
    folder = FOLDER / package
    python = str(folder / "bin" / "python")
    asked, made = requirements(package), folder / "requirements"
    if not made.exists() or made.read_text() != "\n".join(asked):
        print(f"installing {', '.join(asked)}", file=sys.stderr, flush=True)
        run(sys.executable, "-m", "venv", "--clear", str(folder))
        words = ["--editable", f"{ROOT}[{EXTRA}]"] if package == OURS else asked
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words)
        # Written last, so that what was interrupted is made again.
        made.write_text("\n".join(asked))
    return Environment(package, python, name)


def requirements(name: str) -> list[str]:
    """Return what an environment is made of; ours of this checkout, and of what it requires."""
    if name != OURS:
        return REQUIREMENTS[name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # A copy of this folder has the environment too, which goes on importing from the original.
    checkout = f"{OURS} {__version__} from {ROOT}"
    return [checkout, *project["dependencies"], *project["optional-dependencies"][EXTRA]]


def run(*command: str) -> str:
    """Run a command to its end and return what it printed."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

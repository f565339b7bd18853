"""Follows a guide with a session of Spark of its own: ``python -m tests.spark.support.guide PAGE``.

The environment of the session's processes is that of this one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.spark.support.sessions import session
from tests.support.processes import ROOT
from tests.support.walkthrough import Walkthrough


async def main(page: str, folder: Path) -> None:
    """Do what the page says, in a folder."""
    env = {"HEADRACE_URL": os.environ["HEADRACE_URL"]}
    spark = session("local[2]", scratch=folder / "spark")
    cells = {"spark": spark, "__name__": "__main__"}
    guide = ROOT / "docs" / "guides" / page
    with Walkthrough(guide, folder, env=env, replaced={}, cells=cells) as reader:
        await reader.follow()
    spark.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path.cwd()))

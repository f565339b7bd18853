"""Drivers of Spark in processes of their own, which tell what they have done and may be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import msgspec

from tests.spark.support.trees import ProcessTree
from tests.support.until import until

SOON_S = 60.0
"""A bound for what a driver does next: on a free machine it takes a tenth of that."""


class Driver(ProcessTree):
    """A program of `tests.spark.programs`, with its JVM and the Python workers of that."""

    @classmethod
    def start(
        cls, program: str, directory: Path, *, name: str = "driver", **arguments: Any
    ) -> Self:
        """Start a program; what it writes on the way is in the directory, too."""
        scratch = {"scratch": str(directory / name), **arguments}
        words = (program, msgspec.json.encode(scratch).decode())
        return cls.module("tests.spark.programs", *words, directory=directory, name=name)

    def told(self, what: str) -> list[dict[str, Any]]:
        """Return what it has said so far of one kind."""
        whole = self.stdout.rpartition("\n")[0]
        lines = [msgspec.json.decode(line, type=dict[str, Any]) for line in whole.splitlines()]
        return [line for line in lines if line["what"] == what]

    async def tells(self, what: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until it has said so many of one kind, and return them."""
        told = await until(
            lambda: self.told(what)[count - 1 :] or self.returncode is not None,
            within=SOON_S,
            what=f"the driver tells {what!r}",
        )
        if told is True:
            raise RuntimeError(f"the driver has ended with {self.returncode}: {self.stderr}")
        return self.told(what)

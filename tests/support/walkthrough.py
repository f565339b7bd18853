"""A page of the documents that is followed from its top to its end, as its reader would.

Its Python blocks that begin with ``# path/of/a/file.py`` are written to that file, one after
another. Its ``console`` blocks are run: what begins with ``$`` is a command, what follows it are
lines that the command prints, in that order and among others, in which ``…`` stands for anything.
A worker and a web server run on until a ``^C``, which ends the latest of them. Python blocks that
begin with ``# cell`` are the cells of a notebook, which knows the names of ``cells`` at first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from tests.support.processes import WorkerProcess
from tests.support.until import patience, until

LIMIT_S = 60
SERVING = ("headrace worker ", "uvicorn ")
ENDING = ("--burst", "--check")
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)


@dataclass
class Command:
    """One command of a page, and lines that it prints."""

    words: str
    printed: list[str] = field(default_factory=list)

    @property
    def serves(self) -> bool:
        """Whether it runs until it is ended."""
        return self.words.startswith(SERVING) and not self.words.endswith(ENDING)


class Walkthrough:
    """The reader of a page, in a folder of his own; leaving the ``with`` ends what he started.

    Args:
        page: its file.
        folder: an empty one.
        env: the environment of the commands, besides that of the tests.
        replaced: what commands and their output say on this machine in place of what the page has.
        cells: the names that the page's cells know.
    """

    def __init__(
        self,
        page: Path,
        folder: Path,
        *,
        env: dict[str, str],
        replaced: dict[str, str],
        cells: dict[str, Any] | None = None,
    ) -> None:
        self._blocks = [(match[1], match[2]) for match in BLOCK.finditer(page.read_text())]
        self._folder = folder
        clean = {name: value for name, value in os.environ.items() if "HEADRACE" not in name}
        scripts = os.path.dirname(sys.executable)
        self._env = {**clean, **env, "PATH": f"{scripts}{os.pathsep}{clean['PATH']}"}
        self._replaced = replaced
        self._cells = cells or {}
        self._serving: list[WorkerProcess] = []
        self._stack = ExitStack()

    async def follow(self) -> None:
        """Do what the page says, and raise `AssertionError` where something else happens."""
        for info, text in self._blocks:
            name, _, body = text.partition("\n")
            if name == "# cell":
                exec(compile(body, "cell", "exec"), self._cells)  # noqa: S102 (the page is ours)
            elif info.startswith("python") and name.startswith("# "):
                file = self._folder / name.removeprefix("# ")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(body)
            elif info == "console":
                for command in commands(self._local(text)):
                    await self._run(command)

    def _local(self, text: str) -> str:
        for said, meant in self._replaced.items():
            text = text.replace(said, meant)
        return text

    async def _run(self, command: Command) -> None:
        if command.words == "^C":
            await self._interrupt(command)
        elif command.serves:
            await self._serve(command)
        elif command.words.startswith("curl "):
            check(command, request(shlex.split(command.words)[1:]))
        else:
            check(command, self._output(command.words))

    def _output(self, words: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", words],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=patience(LIMIT_S),
            check=False,
        )
        assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    async def _serve(self, command: Command) -> None:
        program, *words = shlex.split(command.words)
        name = f"{len(os.listdir(self._folder))}-{program}"
        process = WorkerProcess.module(
            program, *words, directory=self._folder, name=name, env=self._env, cwd=self._folder
        )
        self._serving.append(self._stack.enter_context(process))
        await self._hears(process, command)

    async def _interrupt(self, command: Command) -> None:
        process = self._serving.pop()
        os.kill(process.pid, signal.SIGINT)
        await process.wait(LIMIT_S)
        await self._hears(process, command)

    async def _hears(self, process: WorkerProcess, command: Command) -> None:
        def missing() -> str:
            return first_missing(command.printed, process.stdout + process.stderr)

        await until(
            lambda: not missing() or process.returncode is not None,
            within=LIMIT_S,
            what=f"{command.words} prints {command.printed}",
        )
        check(command, process.stdout + process.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)


def commands(text: str) -> Iterator[Command]:
    """Yield the commands of a console block; one may go on after a backslash and a line's end."""
    command: Command | None = None
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ ") or line == "^C":
            if command is not None:
                yield command
            command = Command(line.removeprefix("$ "))
        elif command is not None and line.strip():
            command.printed.append(line.rstrip())
    if command is not None:
        yield command


def first_missing(expected: list[str], output: str) -> str:
    """Return the first of the lines that was not printed in its turn, or an empty string."""
    lines = iter(output.splitlines())
    for wanted in expected:
        pattern = re.escape(wanted.strip()).replace("…", ".*")
        if not any(re.fullmatch(pattern, line.strip()) for line in lines):
            return wanted
    return ""


def check(command: Command, output: str) -> None:
    """Raise `AssertionError` if a command has not printed what the page says."""
    wanted = first_missing(command.printed, output)
    assert not wanted, f"$ {command.words}\nis to print\n{wanted}\nand has printed\n{output}"


def request(words: list[str]) -> str:
    """Return what ``curl`` would print, which is not on every machine."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("-N", "--no-buffer", action="store_true")
    parser.add_argument("-X", "--request")
    parser.add_argument("--json", type=json.loads)
    parser.add_argument("url")
    said = parser.parse_args(words)
    method = said.request or ("POST" if said.json is not None else "GET")
    answer = httpx2.request(
        method, f"http://{said.url}", json=said.json, timeout=patience(LIMIT_S), trust_env=False
    )
    return answer.text

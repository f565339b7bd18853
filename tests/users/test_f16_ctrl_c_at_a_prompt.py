"""F16: the first Ctrl-C ends a prompt."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from headrace import App, FailPermanently, Worker
from tests.support.processes import ROOT
from tests.support.until import patience, until

CTRL_C = b"\x03"


async def press_at_the_prompt(url: str, *words: str) -> tuple[int, str]:
    """Press Ctrl-C once where a command asks; return its exit code and what it wrote."""
    person, terminal = pty.openpty()
    with subprocess.Popen(  # noqa: ASYNC220 (it returns at once)
        [sys.executable, "-m", "headrace", *words],
        cwd=ROOT,
        env={**os.environ, "HEADRACE_REDIS_URL": url},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # its own terminal
    ) as process:
        os.close(terminal)
        text = b""
        while b"[y/N]" not in text:
            text += os.read(person, 4096)
        reader = psutil.Process(process.pid)
        # A person is slower than the few microseconds between the question and the read.
        await until(lambda: reader.status() == psutil.STATUS_SLEEPING, what="it reads the answer")
        os.write(person, CTRL_C)
        try:
            code = process.wait(patience(20))
        finally:
            process.kill()
        text += os.read(person, 4096)
    os.close(person)
    return code, text.decode()


async def stock(url: str) -> None:
    """Make a dead letter and a job that waits."""
    app = App(url)

    @app.task(name="boom")
    async def boom() -> None:
        raise FailPermanently("no")

    async with app:
        await boom.enqueue()
        await Worker(app, burst=True).run()
        await boom.enqueue()


@pytest.mark.parametrize(
    "words",
    [("queue", "purge", "default"), ("dead", "redrive", "--all")],
    ids=["queue purge", "dead redrive"],
)
async def test_f16_the_first_ctrl_c_ends_a_prompt(tmp_path: Path, words: tuple[str, ...]) -> None:
    """F16."""
    url = f"file://{tmp_path}/data"
    await stock(url)
    code, text = await press_at_the_prompt(url, *words)
    assert code == 130
    assert "Interrupted." in text
    assert "Traceback" not in text

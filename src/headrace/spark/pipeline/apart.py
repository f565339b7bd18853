"""Runs a function of the pipeline in a process of its own, which ends with the one that asks.

So a worker's memory is not Java's, and what is cancelled is over: the process, its Java and their
Python processes are killed together. What is asked for goes through standard input, since others
can read a command line and the URL may have a password. It stays open: its end means that who has
asked is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

import anyio
import anyio.abc
import msgspec

from headrace import errors
from headrace.description import told
from headrace.errors import ArchiveInUse, EventsLost, HeadraceError, StorageError, UsageError
from headrace.spark.requirements import check_pyspark


class PipelineCall(msgspec.Struct, frozen=True):
    """What is to be done.

    Attributes:
        function: a public name of `headrace.spark.pipeline`, which returns a report.
        root: where the archive is.
        arguments: by name, as plain data.
        master: which Spark does it.
        conf: its settings.
    """

    function: str
    root: str
    arguments: dict[str, Any]
    master: str
    conf: dict[str, str]


class PipelineReply(msgspec.Struct, frozen=True):
    """What came of it: a report, or the name of an error of ours and what it says."""

    report: dict[str, Any] = {}
    error: str = ""
    message: str = ""


async def run_apart(call: PipelineCall) -> dict[str, Any]:
    """Return the report of a function that has run in a process of its own.

    Raises:
        HeadraceError: it failed, of the kind that the function has raised.
    """
    # What it leaves behind when it is killed goes with this directory.
    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch, TemporaryFile() as printed:
        conf = {"spark.local.dir": scratch, **call.conf}
        process = await anyio.open_process(
            [sys.executable, "-m", __name__], stderr=printed, start_new_session=True
        )
        try:
            answer = await _answer(process, msgspec.structs.replace(call, conf=conf))
        finally:
            await _end(process)
        if not answer:
            raise HeadraceError(f"{call.function} ended in the middle: {_last_line(printed)}")
    reply = msgspec.json.decode(answer, type=PipelineReply)
    if reply.error:
        raise getattr(errors, reply.error)(reply.message)
    return reply.report


async def _answer(process: anyio.abc.Process, call: PipelineCall) -> bytes:
    """Send what is asked and return what is answered, nothing if the process dies before."""
    assert process.stdin is not None, "it is a pipe by default"  # noqa: S101
    assert process.stdout is not None, "as above"  # noqa: S101
    with suppress(anyio.BrokenResourceError):
        await process.stdin.send(msgspec.json.encode(call) + b"\n")
    return b"".join([piece async for piece in process.stdout])


async def _end(process: anyio.abc.Process) -> None:
    """See that a process and all that it has started are gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with anyio.CancelScope(shield=True):
        await process.aclose()


def _last_line(printed: IO[bytes]) -> str:
    printed.seek(0)
    lines = printed.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it did not say why")


def main() -> None:
    """Read what is asked, do it and answer: what such a process runs."""
    with open(0, "rb", buffering=0, closefd=False) as asking:
        call = msgspec.json.decode(asking.readline(), type=PipelineCall)
    threading.Thread(target=_end_with_asker, name="headrace-asker", daemon=True).start()
    # Nothing but the answer goes there: neither what Java prints nor what a function does.
    with os.fdopen(os.dup(1), "wb") as answering:
        os.dup2(2, 1)
        answering.write(msgspec.json.encode(_reply(call)))


def _end_with_asker() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _reply(call: PipelineCall) -> PipelineReply:
    try:
        return PipelineReply(_report(call))
    except (UsageError, StorageError, EventsLost, ArchiveInUse) as error:
        return PipelineReply(error=type(error).__name__, message=str(error))
    except Exception as error:
        message = str(error) if isinstance(error, HeadraceError) else told(error)
        return PipelineReply(error="HeadraceError", message=f"{call.function} failed: {message}")


def _report(call: PipelineCall) -> dict[str, Any]:
    check_pyspark()
    from headrace.spark.starting import started

    function = getattr(import_module("headrace.spark.pipeline"), call.function)
    with started(call.master, conf=call.conf) as spark:
        plain: dict[str, Any] = msgspec.to_builtins(function(spark, call.root, **call.arguments))
    return plain


if __name__ == "__main__":
    main()

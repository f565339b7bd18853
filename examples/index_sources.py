"""Index the Python files of the standard library: one job a file, run by worker processes.

    python examples/index_sources.py                              needs no server
    python examples/index_sources.py --url redis://localhost:6379 --workers 4

This process enqueues and waits; the workers are ``headrace worker examples.index_sources:app``.
They share a directory, which is removed in the end, or what ``--url`` names.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import hashlib
import signal
import sys
import sysconfig
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import anyio
import anyio.to_thread

from headrace import App, FailPermanently, JobFailed, JobHandle

ROOT = Path(__file__).resolve().parents[1]
TENANT = "headrace-demo"
QUEUE = "sources"
LEAST_FILES = 1000

# A worker imports this module for the app and its task, and needs nothing below them.

app = App(tenant=TENANT)  # at HEADRACE_URL, unless main() says otherwise


@dataclass(frozen=True)
class SourceFile:
    """What is known of one file; stored as JSON, and a `SourceFile` again for who waits for it."""

    path: str
    sha256: str
    lines: int
    functions: int
    classes: int
    cpu_seconds: float


@app.task(name="index", queue=QUEUE, timeout=60)
async def index(path: str) -> SourceFile:
    """Read one file. Parsing would block the event loop, so it goes to a thread."""
    return await anyio.to_thread.run_sync(read_source, path)


def read_source(path: str) -> SourceFile:
    """Hash, parse and count."""
    started = time.thread_time()
    source = Path(path).read_bytes()
    try:
        nodes = list(ast.walk(ast.parse(source, filename=Path(path).name)))
    except (SyntaxError, ValueError) as error:
        # To try again would not help: the job becomes a dead letter at once.
        raise FailPermanently(f"{type(error).__name__}: {error}") from error
    return SourceFile(
        path=path,
        sha256=hashlib.sha256(source).hexdigest(),
        lines=len(source.splitlines()),
        functions=sum(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) for n in nodes),
        classes=sum(isinstance(n, ast.ClassDef) for n in nodes),
        cpu_seconds=time.thread_time() - started,
    )


def find_sources(folder: Path | None = None) -> Iterator[Path]:
    """Yield the Python files of a folder, or of the standard library without installed packages."""
    if folder is not None:
        yield from sorted(folder.rglob("*.py"))
        return
    library = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    found = [path for path in library if not {"site-packages", "dist-packages"} & set(path.parts)]
    yield from found
    if len(found) < LEAST_FILES:  # some systems leave out the tests, which are most of it
        yield from sorted(Path(sysconfig.get_path("purelib")).rglob("*.py"))


async def index_all(paths: Sequence[Path], worker_count: int, folder: Path) -> None:
    """Run a job for each path and print what came of it."""
    for state in ("queued", "completed", "failed"):  # what an earlier run left
        await app.queue(QUEUE).purge(state, all_jobs=True)
    started = time.perf_counter()
    handles = await app.enqueue_many(index.job(str(path)) for path in paths)
    print(f"enqueued {len(handles):,} jobs in {time.perf_counter() - started:.3f} s", flush=True)

    report = Report(total=len(handles))
    async with running_workers(worker_count, folder / "workers.log") as workers:
        async with anyio.create_task_group() as group:
            group.start_soon(watch_over, workers, group.cancel_scope)
            async with anyio.create_task_group() as waits:
                for path, handle in zip(paths, handles, strict=True):
                    waits.start_soon(collect, path, handle, report)
            group.cancel_scope.cancel()
        if report.ended < report.total:
            sys.exit("every worker has ended:\n" + (folder / "workers.log").read_text())
        print_summary(report, worker_count)
        await print_stats()


async def collect(path: Path, handle: JobHandle[SourceFile], report: Report) -> None:
    """Wait for one job."""
    try:
        report.done.append(await handle.result())
    except JobFailed as error:
        report.failed.append((path, error))
    report.show_progress()


async def watch_over(workers: Sequence[Process], scope: anyio.CancelScope) -> None:
    """Give up when there is nobody left to run jobs."""
    for worker in workers:
        await worker.wait()
    scope.cancel()


@dataclass
class Report:
    """What the jobs have come to so far."""

    total: int
    done: list[SourceFile] = field(default_factory=list)
    failed: list[tuple[Path, JobFailed]] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return len(self.done) + len(self.failed)

    def show_progress(self) -> None:
        """Draw a bar on a terminal, print a line at every tenth elsewhere."""
        rate = self.ended / (time.perf_counter() - self.started)
        text = f"{self.ended:,} of {self.total:,} files, {rate:,.0f} jobs/s"
        is_last = self.ended == self.total
        if sys.stdout.isatty():
            bar = "#" * (40 * self.ended // self.total)
            print(f"\r[{bar:<40}] {text}", end="\n" if is_last else "", flush=True)
        elif is_last or self.ended % max(1, self.total // 10) == 0:
            print(text, flush=True)


def print_summary(report: Report, worker_count: int) -> None:
    """Print totals, the slowest files and the dead letters."""
    files = report.done
    seconds = time.perf_counter() - report.started
    print(f"\nfiles      {len(files):>9,}")
    print(f"lines      {sum(file.lines for file in files):>9,}")
    print(f"functions  {sum(file.functions for file in files):>9,}")
    print(f"classes    {sum(file.classes for file in files):>9,}")
    print(f"seconds    {seconds:>9.1f}   {worker_count} worker processes, their start included")
    print(f"jobs/s     {report.ended / seconds:>9,.0f}")
    print("\nslowest files")
    for file in sorted(files, key=lambda file: file.cpu_seconds, reverse=True)[:5]:
        print(f"  {file.cpu_seconds:6.3f} s  {short(file.path)}")
    print(f"\ndead letters: {len(report.failed)}")
    for path, error in report.failed:
        print(f"  {short(path)}\n    {error.reason}: {error.error_message}")


def short(path: str | Path) -> str:
    """Return the end of a path."""
    return "/".join(Path(path).parts[-3:])


async def print_stats() -> None:
    """Show the queue as an operator would look at it."""
    command = ["queue", "stats", QUEUE, "--url", app.url, "--tenant", TENANT]
    print(f"\n$ headrace {' '.join(command)}", flush=True)
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "headrace", *command)
    if await process.wait() != 0:
        sys.exit("the command failed")


@asynccontextmanager
async def running_workers(count: int, log: Path) -> AsyncIterator[list[Process]]:
    """Run worker processes on this app's tasks."""
    command = [sys.executable, "-W", "ignore", "-m", "headrace", "worker"]
    command += ["examples.index_sources:app", "--url", app.url, "--tenant", TENANT]
    # One slot each: parsing holds the interpreter's lock, so only more processes make it faster.
    command += ["--concurrency", "1", "--log-level", "warning"]
    async with AsyncExitStack() as stack:
        programs = [running(*command, log=log) for _ in range(count)]
        yield [await stack.enter_async_context(program) for program in programs]


@asynccontextmanager
async def running(*command: str, log: Path) -> AsyncIterator[Process]:
    """Run a program as long as the block; then ask it to end, and see that it has."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=output,
            stderr=output,
            cwd=ROOT,
            start_new_session=True,  # Ctrl-C doesn't reach it: this process ends it, in order
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(30):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def run(options: argparse.Namespace) -> None:
    """Find the files, and a place for the jobs."""
    paths = list(islice(find_sources(options.folder), options.limit))
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as name:
        folder = Path(name)
        app.url = options.url or (folder / "jobs").as_uri()
        async with app:
            await index_all(paths, options.workers, folder)


def main() -> None:
    """Read the command line and run; what was started is stopped, however it ends."""
    parser = argparse.ArgumentParser(description="Index Python files with a few workers.")
    parser.add_argument("--url", help="storage of yours, as in redis://localhost:6379")
    parser.add_argument("--workers", type=int, default=2, help="processes, default 2")
    parser.add_argument("--folder", type=Path, help="default: Python's standard library")
    parser.add_argument("--limit", type=int, help="only the first so many files")
    options = parser.parse_args()
    if options.url and options.url.startswith("memory:"):
        parser.error("the workers are processes of their own, and memory:// is inside of one")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a script's background
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        asyncio.run(run(options))
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: what was started is stopped")


if __name__ == "__main__":
    main()

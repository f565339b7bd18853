"""Index the Python files of the standard library: one job a file, run by worker processes.

    python examples/index_sources.py                              with a Redis of its own
    python examples/index_sources.py --url redis://localhost:6379 --workers 4

This process enqueues and waits; the workers are ``headrace worker examples.index_sources:app``.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import anyio.to_thread

from headrace import App, FailPermanently, JobFailed, JobHandle, WaitTimeout

ROOT = Path(__file__).resolve().parents[1]
TENANT = "headrace-demo"
LEAST_FILES = 1000

# The tasks. A worker imports this module and needs nothing below them.

app = App(tenant=TENANT)  # at HEADRACE_REDIS_URL, unless main() says otherwise


@dataclass(frozen=True, slots=True)
class SourceFile:
    """What is known of one file; stored as JSON, and a `SourceFile` again for whoever waits."""

    path: str
    sha256: str
    lines: int
    functions: int
    classes: int
    cpu_seconds: float


@app.task(name="index", queue="sources", timeout=60)
async def index(path: str) -> SourceFile:
    """Read one file. Parsing would block the event loop, so it goes to a thread."""
    return await anyio.to_thread.run_sync(read_source, path)


def read_source(path: str) -> SourceFile:
    """Hash, parse and count."""
    started = time.thread_time()
    source = Path(path).read_bytes()
    try:
        nodes = list(ast.walk(ast.parse(source)))
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


# The producer: enqueue all, start workers, collect every result.


def find_sources(folder: Path | None) -> Iterator[Path]:
    """Yield the Python files of a folder; by default of the standard library."""
    if folder is not None:
        yield from sorted(folder.rglob("*.py"))
        return
    library = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    found = [path for path in library if not {"site-packages", "dist-packages"} & set(path.parts)]
    yield from found
    if len(found) < LEAST_FILES:  # some distributions leave the tests out
        yield from sorted(Path(sysconfig.get_path("purelib")).rglob("*.py"))


async def index_all(paths: Sequence[Path], options: argparse.Namespace) -> None:
    """Run a job for each path and print what came of it."""
    async with app:
        for state in ("queued", "completed", "failed"):  # what an earlier run left
            await app.queue("sources").purge(state, all_jobs=True)
        started = time.perf_counter()
        handles = await app.enqueue_many(index.job(str(path)) for path in paths)
        seconds = time.perf_counter() - started
        print(f"enqueued {len(handles):,} jobs in {seconds:.3f} s", flush=True)

        done: list[SourceFile] = []
        failed: list[tuple[Path, JobFailed]] = []
        progress = Progress(len(handles))
        started = time.perf_counter()
        with running_workers(options.workers) as workers:
            for path, handle in zip(paths, handles, strict=True):
                try:
                    done.append(await result_of(handle, workers))
                except JobFailed as error:
                    failed.append((path, error))
                progress.step()
            seconds = time.perf_counter() - started
            print_summary(done, failed, seconds, options.workers)
            print_stats()


async def result_of(
    handle: JobHandle[SourceFile], workers: Sequence[subprocess.Popen[bytes]]
) -> SourceFile:
    """Wait for a job as long as there is somebody to run it."""
    while True:
        try:
            return await handle.result(timeout=5)
        except WaitTimeout:
            if all(worker.poll() is not None for worker in workers):
                sys.exit("every worker has ended: see its messages above")


# What it shows.


class Progress:
    """A bar on a terminal, a plain line at every tenth elsewhere."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.started = time.perf_counter()

    def step(self) -> None:
        """Count one job that has ended."""
        self.done += 1
        is_last = self.done == self.total
        tenth = max(1, self.total // 10)
        rate = self.done / (time.perf_counter() - self.started)
        text = f"{self.done:,} of {self.total:,} files, {rate:,.0f} jobs/s"
        if sys.stdout.isatty():
            bar = "#" * (40 * self.done // self.total)
            print(f"\r[{bar:<40}] {text}", end="\n" if is_last else "", flush=True)
        elif is_last or self.done % tenth == 0:
            print(text, flush=True)


def print_summary(
    done: Sequence[SourceFile],
    failed: Sequence[tuple[Path, JobFailed]],
    seconds: float,
    workers: int,
) -> None:
    """Print totals, the slowest files and the dead letters."""
    jobs = len(done) + len(failed)
    print(f"\nfiles      {len(done):>10,}")
    print(f"lines      {sum(file.lines for file in done):>10,}")
    print(f"functions  {sum(file.functions for file in done):>10,}")
    print(f"classes    {sum(file.classes for file in done):>10,}")
    print(f"seconds    {seconds:>10.2f}")
    print(f"jobs/s     {jobs / seconds:>10,.0f}   ({workers} worker processes)")
    print("\nslowest files")
    for file in sorted(done, key=lambda file: file.cpu_seconds, reverse=True)[:5]:
        print(f"  {file.cpu_seconds:.3f} s  {file.path}")
    print(f"\n{len(failed)} dead letters")
    for path, error in failed:
        print(f"  {path}\n    {error.reason}: {error.error_message}")


def print_stats() -> None:
    """Show the queue as an operator would see it."""
    command = ["queue", "stats", "sources", "--url", app.url, "--tenant", TENANT]
    print(f"\n$ headrace {' '.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", "headrace", *command], check=True)


# What it starts, each ended with its block: workers, and a Redis server.


@contextmanager
def running_workers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run worker processes; at the end they finish what they have, and stop."""
    command = [sys.executable, "-W", "ignore", "-m", "headrace", "worker"]
    command += ["examples.index_sources:app", "--concurrency", "4"]
    environment = {**os.environ, "HEADRACE_REDIS_URL": app.url}
    workers: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            # A session of its own: Ctrl-C ends this process, and this process ends the workers.
            workers.append(
                subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
            )
        yield workers
    finally:
        stop(workers)


@contextmanager
def temporary_redis() -> Iterator[str]:
    """Run a Redis server on a free loopback port, its files in a temporary folder."""
    program = shutil.which("redis-server") or Path(sys.executable).with_name("redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
        command = [str(program), "--bind", "127.0.0.1", "--port", str(port)]
        command += ["--dir", folder, "--logfile", "redis.log", "--save", ""]
        server = subprocess.Popen(command, start_new_session=True)
        try:
            wait_for_port(port, server)
            yield f"redis://127.0.0.1:{port}"
        finally:
            stop([server])


def wait_for_port(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return once the server listens."""
    give_up_at = time.monotonic() + 10
    while server.poll() is None and time.monotonic() < give_up_at:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    sys.exit("redis-server did not start")


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask processes to end, and see that they have."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Index Python files with a few workers.")
    parser.add_argument("--url", help="a Redis of yours, as in redis://localhost:6379")
    parser.add_argument("--workers", type=int, default=2, help="processes, default 2")
    parser.add_argument("--folder", type=Path, help="default: Python's standard library")
    parser.add_argument("--limit", type=int, help="only the first so many files")
    options = parser.parse_args()
    paths = list(islice(find_sources(options.folder), options.limit))
    # SIGTERM as Ctrl-C: either way the blocks below end what they started.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        if options.url:
            app.url = options.url
            asyncio.run(index_all(paths, options))
        else:
            with temporary_redis() as app.url:
                asyncio.run(index_all(paths, options))
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: workers and server are stopped")


if __name__ == "__main__":
    main()

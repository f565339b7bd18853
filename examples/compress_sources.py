"""Compress the Python files of the standard library on all processors: one job a file.

    python examples/compress_sources.py                           without any server
    python examples/compress_sources.py --slots 4 --limit 500

Every file is compressed in three ways and read back, in as many processes as there are processors.
This process enqueues, runs the worker, and waits for the results.
"""

from __future__ import annotations

import argparse
import asyncio
import bz2
import hashlib
import lzma
import os
import sysconfig
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import anyio

from headrace import App, FailPermanently, JobFailed, JobHandle, Worker

app = App("memory://", tenant="headrace-demo")

METHODS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "zlib": (zlib.compress, zlib.decompress),
    "bz2": (bz2.compress, bz2.decompress),
    "lzma": (lzma.compress, lzma.decompress),
}


@dataclass(frozen=True)
class Packed:
    """What became of one file; stored as JSON, and a `Packed` again for who waits for it."""

    path: str
    sha256: str
    size: int
    sizes: dict[str, int]
    cpu_seconds: float
    pid: int


@app.task(name="pack", queue="files", executor="process", timeout=60)
def pack(path: str) -> Packed:
    """Keep one processor busy with one file."""
    started = time.process_time()
    data = Path(path).read_bytes()
    sizes = {}
    for name, (compress, decompress) in METHODS.items():
        packed = compress(data)
        if decompress(packed) != data:
            raise FailPermanently(f"{name} does not bring {path} back")
        sizes[name] = len(packed)
    return Packed(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        sizes=sizes,
        cpu_seconds=time.process_time() - started,
        pid=os.getpid(),
    )


def find_files(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder, but for what was installed into it."""
    for path in sorted(folder.rglob("*.py")):
        if path.is_file() and "site-packages" not in path.parts:
            yield path


async def gather(jobs: list[JobHandle[Packed]]) -> list[Packed]:
    """Wait for the results, and say how far they are."""
    results = []
    for number, job in enumerate(jobs, start=1):
        with suppress(JobFailed):
            results.append(await job.result())
        if number % 500 == 0:
            print(f"{number:,} of {len(jobs):,} files")
    return results


def report(results: list[Packed], elapsed_s: float) -> None:
    """Print the sums."""
    size = sum(packed.size for packed in results)
    cpu_s = sum(packed.cpu_seconds for packed in results)
    print(f"files      {len(results):>12,}")
    print(f"bytes      {size:>12,}")
    for name in METHODS:
        packed_size = sum(packed.sizes[name] for packed in results)
        print(f"{name:<10} {packed_size:>12,}  {packed_size / max(size, 1):.0%}")
    distinct = len({packed.sha256 for packed in results})
    print(f"distinct   {distinct:>12,}")
    print(f"{cpu_s:.1f} s of processor time in {elapsed_s:.1f} s: {cpu_s / elapsed_s:.1f} at once")
    for pid, count in sorted(Counter(packed.pid for packed in results).items()):
        print(f"process {pid} compressed {count:,} files")


async def main() -> None:
    """Enqueue, run, and wait."""
    parser = argparse.ArgumentParser(description="Compress files on all processors.")
    parser.add_argument("--folder", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--limit", type=int, help="so many files at most")
    parser.add_argument("--slots", type=int, help="processes, as many as processors by default")
    chosen = parser.parse_args()
    paths = list(islice(find_files(chosen.folder), chosen.limit))
    worker = Worker(app, process_slots=chosen.slots)
    async with app, anyio.create_task_group() as group:
        jobs = await app.enqueue_many(pack.job(str(path)) for path in paths)
        print(f"enqueued {len(jobs):,} jobs")
        group.start_soon(worker.run)
        started = time.monotonic()
        report(await gather(jobs), time.monotonic() - started)
        worker.stop()


if __name__ == "__main__":
    asyncio.run(main())

"""Runs jobs and faults on real processes, heals, drains, and judges; `make soak-chaos` starts it.

It ends with 1 if a rule is broken, and then says which, and keeps the directory with the notes and
logs. The times of real processes can't be repeated, but a seed brings the same jobs and faults.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from headrace.queue_jobs import PURGEABLE
from tests.chaos.evidence import Evidence, Machine, gather
from tests.chaos.file_site import FileSite
from tests.chaos.member import processes_of, words_of
from tests.chaos.mutants import IGNORES_CLAIMS, MUTANTS
from tests.chaos.plan import ONE_IN, QUEUES, Kind
from tests.chaos.redis_site import RedisSite
from tests.chaos.settings import RECOVERED_S, Settings
from tests.chaos.site import Site, came
from tests.chaos.storm import CATALOGUE, Storm, attend
from tests.chaos.verdict import judge
from tests.storage.sqlite.apart import OWN_MOUNTS

SITES: dict[str, type[RedisSite] | type[FileSite]] = {"redis": RedisSite, "file": FileSite}
JOBS_A_SECOND = {"redis": 330, "file": 100}
SECONDS_A_FAULT = {"redis": 5, "file": 10}
CHILDREN_LEAVE_S = 5.0
APART = "CHAOS_APART"
"""Set in the environment of a process that has mounts of its own."""


def say(text: str) -> None:
    """Print at once, for who watches a log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def run(settings: Settings, directory: Path) -> Evidence:
    """Do one run, and return what is known of it."""
    async with SITES[settings.storage](settings, directory) as site:
        before = site.memory()
        machine = Machine()
        watch = asyncio.create_task(attend(site))
        storm = Storm(site)
        await storm.blow()
        machine.failed_faults = storm.failed
        await site.heal()
        await settle(site, machine)
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await dismiss(site, machine)
        machine.problems = site.problems()
        evidence = await gather(site, machine)
        await purge(site)
        machine.growth_bytes = site.memory() - before
        return evidence


async def settle(site: Site, machine: Machine) -> None:
    """Wait until everything is sent and has ended, and nobody dead is listed any more."""
    healed_at = time.monotonic()
    machine.is_drained = await site.has_sent_all(site.settings.seconds + site.settings.drain_s)
    machine.is_drained &= await site.has_published_all(site.settings.drain_s)
    machine.is_drained &= await site.is_drained(site.settings.drain_s)
    machine.drained_s = time.monotonic() - healed_at
    await site.has_forgotten(4 * RECOVERED_S)


async def dismiss(site: Site, machine: Machine) -> None:
    """Let everybody go, and see what they had and who is left."""
    crew = site.crew
    for worker in [process for member in crew.workers for process in member.family()]:
        with suppress(psutil.Error):
            machine.worker_bytes = max(machine.worker_bytes, worker.memory_info().rss)
            machine.worker_files = max(machine.worker_files, worker.num_fds())
    for leave in (crew.dismiss_producers, crew.dismiss_workers):
        try:
            await leave()
        except AssertionError as error:
            machine.unasked.append(str(error))
    machine.unasked += [text for m in crew.members for text in m.unasked]
    machine.unasked += site.crashes()
    await came(lambda: not list(processes_of(site.directory)), CHILDREN_LEAVE_S)
    machine.left = [f"{p.pid} {words_of(p)}" for p in processes_of(site.directory)]


async def purge(site: Site) -> None:
    """Delete every job and event."""
    async with site.app() as app:
        for name in QUEUES:
            for state in PURGEABLE:
                await app.queue(name).purge(state, all_jobs=True)
    site.forget_events()


def run_and_tell(settings: Settings) -> bool:
    """Do one run and print its verdict; whether every line is ok."""
    directory = Path(tempfile.mkdtemp(prefix=f"headrace-chaos-{settings.storage}-"))
    say(
        f"{settings.storage}: {settings.jobs:,} jobs and {settings.faults} faults in "
        f"{settings.seconds:g} s, seed {settings.seed} {settings.mutant}"
    )
    began = time.monotonic()
    evidence = asyncio.run(run(settings, directory))
    lines = judge(evidence)
    say("\n".join(map(str, lines)))
    is_ok = all(line.is_ok for line in lines)
    took = f"{time.monotonic() - began:.0f} s"
    if is_ok:
        shutil.rmtree(directory)
        say(f"{settings.storage}: ok, seed {settings.seed}, {took}")
    else:
        evidence.save(directory)
        say(f"{settings.storage}: BAD, seed {settings.seed}, {took}; see {directory}")
    return is_ok


def settings_of(given: argparse.Namespace, storage: str) -> Settings:
    """Return the settings of a run on one of the storages."""
    seconds = given.seconds / (2 if given.storage == "both" else 1)
    return Settings(
        storage=storage,
        seed=given.seed,
        seconds=seconds,
        jobs=given.jobs or round(JOBS_A_SECOND[storage] * seconds),
        faults=round(seconds / SECONDS_A_FAULT[storage]) if given.faults is None else given.faults,
        only=tuple(given.only),
        leave_out=tuple(given.leave_out),
        one_in=dict(given.one_in),
        mutant=given.mutant,
        drain_s=given.drain,
    )


def rarity(text: str) -> tuple[str, int]:
    """Return what one word of ``--one-in`` says.

    Raises:
        ValueError: it is not a kind of jobs and a number.
    """
    kind, _, number = text.partition("=")
    return Kind(kind), int(number)


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = argparse.ArgumentParser(prog="make soak-chaos", description=__doc__)
    names = sorted(fault.name for fault in CATALOGUE)
    made.add_argument("--seconds", type=float, default=300, help="of jobs and faults (300)")
    made.add_argument("--seed", type=int, default=1, help="of every draw (1)")
    made.add_argument("--storage", choices=(*SITES, "both"), default="both", help="(both, in turn)")
    made.add_argument("--jobs", type=int, help="a storage; redis 330 a second, file 100")
    made.add_argument("--faults", type=int, help="a storage; redis one in 5 seconds, file in 10")
    made.add_argument("--only", nargs="+", default=(), choices=names, metavar="FAULT")
    made.add_argument(
        "--leave-out", nargs="+", default=(), choices=names, metavar="FAULT",
        help=f"of {', '.join(names)}",
    )  # fmt: skip
    made.add_argument(
        "--one-in", nargs="+", default=(), type=rarity, metavar="KIND=N",
        help=f"one job in N is of a kind, 0 for none: of {', '.join(ONE_IN)}",
    )  # fmt: skip
    made.add_argument("--drain", type=float, default=60, help="seconds until all have ended (60)")
    made.add_argument(
        "--mutant", default="", choices=("", IGNORES_CLAIMS, *MUTANTS), metavar="NAME",
        help=f"a storage that is wrong on purpose: {', '.join((IGNORES_CLAIMS, *MUTANTS))}",
    )  # fmt: skip
    return made


def main() -> None:
    """Run what the command line says."""
    given = parser().parse_args()
    storages = list(SITES) if given.storage == "both" else [given.storage]
    if "file" in storages and APART not in os.environ:
        # A disk that can be full is mounted, where nobody else sees it.
        words = [*OWN_MOUNTS, sys.executable, "-m", "tests.chaos.soak", *sys.argv[1:]]
        os.execvpe(words[0], words, {**os.environ, APART: "1"})  # noqa: S606 (it is this program)
    results = [run_and_tell(settings_of(given, storage)) for storage in storages]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()

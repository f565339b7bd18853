"""What operators ask of the storage: health, doctor."""

from __future__ import annotations

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import ask
from headrace.cli.colours import LEVELS, Coloured
from headrace.cli.options import Target, on_target, option, output_option, run
from headrace.cli.output import echo, echo_json, message_of, note
from headrace.cli.repair import RepairedQueue, find_lost, repair_queues, show_repaired
from headrace.cli.tables import Column, table
from headrace.errors import HeadraceError
from headrace.storage.values import Finding


class StorageHealth(msgspec.Struct):
    """The JSON document of ``health``."""

    healthy: bool
    error: str | None


@click.command()
@output_option
@on_target
def health(*, target: Target, output: str) -> None:
    """Ping the storage: exits with 0, or with 1 if it can't be used.

    It imports no app, so that a probe needs none of the app's settings.
    """
    problem = run(_problem(target))
    if output == "json":
        echo_json(StorageHealth(healthy=not problem, error=problem or None))
    elif not problem:
        echo("healthy")
    if problem:
        raise click.ClickException(problem)


async def _problem(target: Target) -> str:
    try:
        async with target.open():
            return ""
    except HeadraceError as error:
        return message_of(error)


@click.command()
@option(
    "--remove-old-libraries",
    is_flag=True,
    help="Delete the functions that other releases left on the server.",
)
@option(
    "--repair",
    is_flag=True,
    help="Bring counts, lists and places of the tenant's queues back to the jobs that are there.",
)
@option("--yes", "-y", is_flag=True, allow_from_autoenv=False, help="Don't ask.")
@option("--dry-run", is_flag=True, allow_from_autoenv=False, help="Show it, and change nothing.")
@output_option
@on_app_target
def doctor(
    *,
    target: Target,
    remove_old_libraries: bool,
    repair: bool,
    yes: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Look the storage over and say what is wrong with it.

    That is a server's version, eviction policy, persistence, clock and functions, and all of an
    embedded database. Exits with 1 if
    something is an error. A worker of another release whose functions were removed loads them again
    when it needs them.

    After records were lost, by hand, by eviction or by a restored backup, --repair finds jobs that
    have lost their place, and brings counts back. Workers' sweeps do most of it by themselves. It
    does no harm to a queue in order, and may run while workers do; while many jobs wait and move,
    counts can't be told: pause the queue, and run it again.
    """
    if repair and (remove_old_libraries or dry_run):
        raise click.UsageError("--repair goes with neither --remove-old-libraries nor --dry-run")
    if repair:
        show_repaired(run(_repair(target)), where=target.where, output=output)
    elif remove_old_libraries:
        run(_tidy(target, yes=yes, dry_run=dry_run, output=output))
    else:
        _show(run(_findings(target)), output=output)


def _show(found: list[Finding], *, output: str) -> None:
    if output == "json":
        echo_json(found)
    else:
        rows = [
            (finding.topic, Coloured(finding.level, LEVELS.get(finding.level, "")), finding.detail)
            for finding in found
        ]
        # Whole, since the end of a finding says what to do.
        table((Column("TOPIC"), Column("LEVEL"), Column("FINDING")), rows, is_wide=True)
    errors = [finding.topic for finding in found if finding.level == "error"]
    if errors:
        raise click.ClickException(f"{', '.join(errors)}: see what the doctor found above")


async def _findings(target: Target) -> list[Finding]:
    # What it refuses to work with is what it is asked about.
    async with msgspec.structs.replace(target, allow_eviction=True).open() as storage:
        return [*await storage.diagnose(), *await find_lost(storage)]


async def _repair(target: Target) -> list[RepairedQueue]:
    async with msgspec.structs.replace(target, allow_eviction=True).open() as storage:
        return await repair_queues(storage)


class Removed(msgspec.Struct):
    """The JSON document of ``doctor --remove-old-libraries``."""

    removed: list[str]
    dry_run: bool


async def _tidy(target: Target, *, yes: bool, dry_run: bool, output: str) -> None:
    removed: list[str] = []
    async with msgspec.structs.replace(target, allow_eviction=True).open() as storage:
        # Only a server has any.
        found = [f for f in await storage.diagnose() if f.topic == "functions"]
        is_due = any(f.level != "ok" for f in found)
        if is_due and (dry_run or not yes):
            note(f"On the server: {found[0].detail}")
        if is_due and not dry_run:
            if not yes:
                ask("Remove those of other releases?")
            removed = await storage.tidy()
    if output == "json":
        echo_json(Removed(removed, dry_run))
    elif dry_run:
        echo("Dry run: nothing was changed.")
    else:
        echo(f"Removed: {', '.join(removed)}." if removed else "There was nothing to remove.")

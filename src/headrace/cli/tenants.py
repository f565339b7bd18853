"""``headrace tenant``: whose queues there are."""

from __future__ import annotations

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.options import Target, output_option, run, wide_option
from headrace.cli.output import echo_json, note
from headrace.cli.tables import Column, table
from headrace.storage.connect import redacted

COLUMNS = (Column("TENANT"), Column("QUEUES"))


class TenantView(msgspec.Struct):
    """One tenant in the JSON document of ``tenant list``."""

    tenant: str
    queues: int


@click.group()
def tenant() -> None:
    """Look at tenants."""


@tenant.command("list")
@wide_option
@output_option
@on_app_target
def list_command(*, target: Target, is_wide: bool, output: str) -> None:
    """List the tenants that have queues or schedules, and how many queues.

    A server looks at all of its keys for it, in many small steps.
    """
    found = run(_load(target))
    if output == "json":
        echo_json(found)
    elif not found:
        note(f"There are no tenants yet at {redacted(target.url_or_default)}.")
    else:
        table(COLUMNS, [(view.tenant, view.queues) for view in found], is_wide=is_wide)


async def _load(target: Target) -> list[TenantView]:
    async with target.open() as storage:
        found = []
        for name in await storage.tenants():
            # Made from one that is open, and closed with it.
            queues = await storage.for_tenant(name).queues()
            found.append(TenantView(name, len(queues)))
        return found

"""Options that several commands share."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click
import msgspec

from headrace.app import DEFAULT_URL
from headrace.cli.output import note
from headrace.cli.quantities import duration, size
from headrace.cli.views import raw
from headrace.errors import InvalidOption, UsageError
from headrace.job import DEFAULT_TENANT, check_name
from headrace.plain import shown
from headrace.queue_events import Operator
from headrace.queues import Queue
from headrace.settings import URL_VARIABLES, variable
from headrace.storage.base import Inspector, Storage, check_keeps_schedules
from headrace.storage.connect import check_exists, open_storage, redacted

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


def names_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return names that stand in one or several texts with commas between them."""
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


class Option(click.Option):
    """An option whose value may not be empty, on the command line or in its variable.

    An empty shell variable would else pass for the default: a new id, or another tenant.
    """

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return what the first of its variables says.

        Raises:
            UsageError: none says anything, but one is set.
        """
        if self.is_flag:
            return super().resolve_envvar_value(ctx)
        names = [self.envvar] if isinstance(self.envvar, str) else list(self.envvar or ())
        if self.allow_from_autoenv and ctx.auto_envvar_prefix is not None and self.name:
            names.append(f"{ctx.auto_envvar_prefix}_{self.name.upper()}")
        try:
            return variable(*names)
        except InvalidOption as error:
            raise click.UsageError(str(error), ctx) from None

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value as its type.

        Raises:
            BadParameter: it is empty, or none of its type.
        """
        if value == "" or (isinstance(value, tuple | list) and "" in value):
            raise click.BadParameter("it is empty: leave it out, or give a value", ctx, self)
        return super().type_cast_value(ctx, value)


option = functools.partial(click.option, cls=Option)
"""Returns an option as `click.option` does, see `Option`."""


class Target(msgspec.Struct, frozen=True):
    """The storage that a command works on.

    Attributes:
        url: where it is, None if neither an option nor the environment says.
        tenant: whose queues, None likewise.
        is_url_explicit: the URL was an option, so that it goes before an app's own.
        is_tenant_explicit: the tenant likewise.
        allow_eviction: take a server that may throw jobs away.
    """

    url: str | None
    tenant: str | None
    is_url_explicit: bool
    is_tenant_explicit: bool
    allow_eviction: bool

    @property
    def is_explicit(self) -> bool:
        """Whether options say all of it, and nothing is left to an app."""
        return self.is_url_explicit and self.is_tenant_explicit

    @property
    def url_or_default(self) -> str:
        """The URL, or the default one."""
        return DEFAULT_URL if self.url is None else self.url

    @property
    def tenant_name(self) -> str:
        """The tenant, or the default one."""
        return DEFAULT_TENANT if self.tenant is None else self.tenant

    @property
    def where(self) -> str:
        """The tenant and the place in words, without a password."""
        return f"tenant {self.tenant_name!r} at {redacted(self.url_or_default)}"

    def storage(self) -> Storage:
        """Return the storage, not connected yet.

        Raises:
            UsageError: no other process can use it.
        """
        return open_storage(
            check_shared(self.url_or_default),
            tenant=check_name(self.tenant_name, what="tenant"),
            allow_eviction=self.allow_eviction,
        )

    @asynccontextmanager
    async def open(
        self, *, makes: bool = False, keeps_schedules: bool = False
    ) -> AsyncIterator[Storage]:
        """Connect and yield the storage; close it afterwards.

        Args:
            makes: make the database of a directory that has none, rather than refuse it.
            keeps_schedules: refuse one of another distribution that keeps no schedules.

        Raises:
            StorageUnavailable: it can't be reached.
            StorageRefused: it can't be used, or isn't there.
        """
        storage = self.storage()
        if keeps_schedules:
            check_keeps_schedules(storage)
        if not makes:
            check_exists(self.url_or_default)
        try:
            await storage.check()
            yield storage
        finally:
            await storage.aclose()


def is_in_memory(url: str) -> bool:
    """Whether a URL names what only the process itself can see."""
    return url.startswith("memory://")


def check_shared(url: str) -> str:
    """Return a URL of a storage that this command and workers can both use.

    Raises:
        UsageError: it is the memory of a process.
    """
    if is_in_memory(url):
        raise UsageError(
            f"{url} is the memory of one process, and what is in another's can't be seen from "
            "here: name a storage that processes share, by --url or HEADRACE_URL"
        )
    return url


def queue_of(storage: Operator, name: str) -> Queue:
    """Return a queue of the storage."""
    return Queue(name, lambda: storage, decode=raw)


async def queue_names(storage: Inspector) -> list[str]:
    """Return the tenant's queues whose names are valid, and tell of others."""
    names = []
    for name in await storage.queues():
        try:
            names.append(check_name(name, what="queue"))
        except InvalidOption:
            note(f"Note: {shown(name)} is listed as a queue, but can't be one: it is passed over.")
    return names


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine to its end."""
    return asyncio.run(main)


def on_target(function: Function) -> Callable[..., Any]:
    """Add the options that say which storage, and pass them on as ``target``."""

    @option(
        "--url",
        metavar="URL",
        envvar=URL_VARIABLES,
        show_envvar=True,
        help="Where the jobs are: redis://, rediss://, unix:// or file:///directory."
        f"  [default: {DEFAULT_URL}]",
    )
    @option(
        "--tenant",
        metavar="NAME",
        envvar="HEADRACE_TENANT",
        show_envvar=True,
        help=f"Whose queues.  [default: {DEFAULT_TENANT}]",
    )
    @option(
        "--allow-eviction",
        is_flag=True,
        envvar="HEADRACE_ALLOW_EVICTION",
        show_envvar=True,
        help="Use a server whose maxmemory-policy may throw jobs away.",
    )
    @functools.wraps(function)
    def wrapper(
        *args: Any, url: str | None, tenant: str | None, allow_eviction: bool, **kwargs: Any
    ) -> Any:
        target = Target(
            url=url,
            tenant=tenant,
            is_url_explicit=_is_on_command_line("url"),
            is_tenant_explicit=_is_on_command_line("tenant"),
            allow_eviction=allow_eviction,
        )
        return function(*args, target=target, **kwargs)

    return wrapper


def _is_on_command_line(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.COMMANDLINE


def duration_option(*names: str, **rest: Any) -> Callable[[Function], Function]:
    """Return an option whose value is a duration."""
    return option(*names, type=duration, metavar="DURATION", **rest)


def size_option(*names: str, **rest: Any) -> Callable[[Function], Function]:
    """Return an option whose value is a number of bytes."""
    return option(*names, type=size, metavar="SIZE", **rest)


app_option = option(
    "--app",
    "-A",
    "app_path",
    metavar="MODULE:ATTR",
    envvar="HEADRACE_APP",
    show_envvar=True,
    help="The app to import, whose URL and tenant are taken; the working directory is on the path.",
)

import_option = option(
    "--import",
    "modules",
    metavar="MODULE,...",
    envvar="HEADRACE_IMPORT",
    show_envvar=True,
    multiple=True,
    callback=lambda _context, _option, texts: names_of(texts),
    help="Modules that declare tasks of the app, beside those that it includes; a package stands "
    "for all that is in it. May be repeated.",
)

output_option = option(
    "--output",
    "-o",
    type=click.Choice(["table", "json"]),
    default="table",
    envvar="HEADRACE_OUTPUT",
    show_envvar=True,
    help="Text for people, or one JSON document.",
)

wide_option = option(
    "--wide",
    "-W",
    "is_wide",
    is_flag=True,
    envvar="HEADRACE_WIDE",
    show_envvar=True,
    help="Show every column, however narrow the terminal is.",
)

queue_option = option("--queue", "-q", metavar="NAME", help="Its queue.")


def destructive(function: Function) -> Function:
    """Add ``--yes`` and ``--dry-run``.

    No environment variable answers for them: one that is left set would confirm what it must not.
    """
    with_yes = option("--yes", "-y", is_flag=True, allow_from_autoenv=False, help="Don't ask.")
    with_dry_run = option(
        "--dry-run",
        is_flag=True,
        allow_from_autoenv=False,
        help="Show what it would do, and change nothing.",
    )
    return with_yes(with_dry_run(function))

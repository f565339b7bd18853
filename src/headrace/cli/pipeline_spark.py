"""What the commands of the pipeline share: which archive, which Spark, which rows."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.cli.options import Function, Target, check_shared, option
from headrace.cli.output import note
from headrace.cli.quantities import instant
from headrace.job import check_name
from headrace.plain import shown
from headrace.settings import URL_VARIABLES, variable

if TYPE_CHECKING:  # it is imported by what is run, and may not be there
    from pyspark.sql import DataFrame, SparkSession


class SparkArchive(msgspec.Struct, frozen=True):
    """An archive, and the Spark that works on it.

    Attributes:
        root: a path or URI that Spark knows.
        master: of Spark.
        conf: settings of Spark.
    """

    root: str
    master: str
    conf: dict[str, str]

    @contextmanager
    def spark(self) -> Iterator[SparkSession]:
        """Start Spark and stop it at the end.

        Raises:
            MissingRequirement: Java is missing or too old.
            HeadraceError: Spark did not start, or can't do what is asked.
        """
        from headrace.spark.starting import started

        with warnings.catch_warnings(), started(self.master, conf=self.conf) as spark:
            warnings.showwarning = _note_warning
            yield spark

    @contextmanager
    def reading(self) -> Iterator[SparkSession]:
        """Start Spark for what is made of an archive that is there.

        Raises:
            InvalidOption: there is no such folder.
            MissingRequirement: Java is missing or too old.
            HeadraceError: Spark did not start, or can't do what is asked.
        """
        with self.spark() as spark:
            from headrace.spark.pipeline.files import check_there

            check_there(spark, self.root)
            yield spark


def _note_warning(message: Warning | str, *_where: object, **_rest: object) -> None:
    note(f"Note: {message}")


def on_archive(function: Function) -> Callable[..., Any]:
    """Add the argument ROOT and the options that say which Spark, passed on as ``archive``.

    Called, it raises `MissingRequirement` where pyspark or pyarrow is missing or too old.
    """

    @click.argument("root", metavar="ROOT")
    @option(
        "--master",
        metavar="MASTER",
        default="local[*]",
        envvar="HEADRACE_SPARK_MASTER",
        show_envvar=True,
        help="The Spark that does it: local[2], spark://host:7077, yarn, sc://host.",
    )
    @option(
        "--conf",
        metavar="NAME=VALUE",
        multiple=True,
        callback=lambda _context, _option, texts: _settings(texts),
        help="A setting of Spark, such as spark.driver.memory=4g; may be repeated.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, root: str, master: str, conf: dict[str, str], **rest: Any) -> Any:
        from headrace.spark.requirements import check_pyspark

        check_pyspark()
        return function(*args, archive=SparkArchive(root, master, conf), **rest)

    return wrapper


def _settings(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise click.BadParameter(f"{shown(text)} is not a setting: use NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


tenant_option = option(
    "--tenant",
    metavar="NAME",
    envvar="HEADRACE_TENANT",
    show_envvar=True,
    callback=lambda _context, _option, name: name and check_name(name, what="tenant"),
    help="Only this tenant's part.  [default: every tenant's]",
)

since_option = option(
    "--since", type=instant, metavar="INSTANT", help="Only what happened from then on."
)

until_option = option(
    "--until", type=instant, metavar="INSTANT", help="Only what happened before then."
)


def url_for_spark(target: Target) -> str:
    """Return the URL for Spark's processes, "" if their environment says it as this one's does.

    So a password that is in the environment gets into no plan of a query.

    Raises:
        UsageError: a server that may throw jobs away is to be used.
    """
    if target.allow_eviction:
        raise click.UsageError(
            "--allow-eviction: Spark's processes use no server that may throw jobs away"
        )
    is_of_environment = not target.is_url_explicit and target.url == variable(*URL_VARIABLES)
    return "" if is_of_environment else check_shared(target.url_or_default)


def documents(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a small DataFrame by the names of their columns, instants in UTC."""
    return [
        {name: _in_utc(value) for name, value in row.items()} for row in frame.toArrow().to_pylist()
    ]


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value

"""Atomic writes that bring in nothing, since an earlier run had committed them."""

from __future__ import annotations

from headrace.errors import UsageError
from headrace.plain import shown
from headrace.spark.options import WriteOptions
from headrace.spark.storages import asker_of
from headrace.staging import WriteTerms
from headrace.storage.steps import at_once
from headrace.views.writes import WriteReport
from headrace.writing import Writing


def known(options: WriteOptions, terms: WriteTerms) -> WriteReport | None:
    """Return on the driver what became of a write that is known already, None of one that is not.

    What is left of it is published.

    Args:
        options: of the write.
        terms: with which it would be written.

    Raises:
        StorageError: it is not answered.
    """
    asker = asker_of(options)
    writing = Writing(terms, lambda: asker)
    at_once(writing.begin())
    return at_once(writing.publish()) if writing.staging.is_known else None


def check_batch(report: WriteReport, terms: WriteTerms) -> None:
    """See that a micro-batch that brought in nothing had been brought in itself.

    Raises:
        UsageError: the write is at a later batch, and this one may have had other rows then.
    """
    if report.batch > terms.batch:
        raise UsageError(
            f"micro-batch {terms.batch} brought in nothing: write {shown(terms.write_id)} has "
            f"committed up to {report.batch}, so the checkpoint is another one than then, or an "
            "older copy of it: go on from the newest, or begin anew with another name of the write"
        )

"""What running attempts say of themselves: ``report`` writes it, ``output`` reads the pieces."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.storage.limits import OUTPUT_PAGE_LIMIT, PIECES_LIMIT
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.record import Record, load
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.values import OutputPage, Report, fraction_text

_SAY = """
UPDATE jobs SET progress = ?1, progress_text = ?2, progress_epoch = epoch
WHERE key = ?3 AND (progress, progress_text, progress_epoch) IS NOT (?1, ?2, epoch)
"""
_LAST = "SELECT epoch, max(number) FROM outputs WHERE job = ? GROUP BY epoch"
_FORGET = "DELETE FROM outputs WHERE job = ?"
_ADD = "INSERT INTO outputs (job, epoch, number, body) VALUES (?, ?, ?, ?)"
_DROP = """
DELETE FROM outputs WHERE job = ?1 AND (epoch, number) <=
  (SELECT epoch, number FROM outputs WHERE job = ?1
   ORDER BY epoch DESC, number DESC LIMIT 1 OFFSET ?2)
"""
_READ = """
SELECT epoch, number, body FROM outputs
WHERE job = (SELECT key FROM jobs WHERE queue = ? AND id = ? AND is_next = 0
  AND (purge_at_ms IS NULL OR purge_at_ms > ?))
  AND (epoch, number) > (?, ?)
ORDER BY epoch, number LIMIT ?
"""


def report(step: Step, name: QueueName, reports: Sequence[Report]) -> list[bool]:
    """Store progress and output, each only for the claim that owns it."""
    unit = find_unit(step, name)
    if unit is None:
        return [False] * len(reports)
    known = load(unit, [said.job_id for said in reports])
    verdicts = [_report(unit, known.get(said.job_id), said) for said in reports]
    unit.close()
    return verdicts


def _report(unit: UnitOfWork, record: Record | None, said: Report) -> bool:
    claim = said.claim
    if record is None or record.state != "active":
        return False
    if (record.epoch, record.nonce) != (claim.epoch, claim.nonce):
        return False
    if said.chunks:
        _add_output(unit, record, said)
    if said.fraction is not None:
        _write_progress(unit, record, fraction_text(said.fraction), said.text)
    return True


def _write_progress(unit: UnitOfWork, record: Record, fraction: str, text: str) -> None:
    """Note progress, unless a call that is repeated has done so."""
    if unit.db.execute(_SAY, (float(fraction), text, record.key)).rowcount:
        unit.events.add(
            "progress",
            record.id,
            record.task,
            start=record.epoch,
            worker=record.owner,
            detail=f"{fraction} {text}",
        )


def _add_output(unit: UnitOfWork, record: Record, said: Report) -> None:
    """Add the pieces that are not there yet; those of an attempt before make room."""
    last = dict(unit.db.execute(_LAST, (record.key,)).fetchall())
    if last and record.epoch not in last:
        unit.db.execute(_FORGET, (record.key,))
    numbered = enumerate(said.chunks, said.first)
    rows = [
        (record.key, record.epoch, number, chunk)
        for number, chunk in numbered
        if number > last.get(record.epoch, -1)
    ]
    unit.db.executemany(_ADD, rows)
    unit.db.execute(_DROP, (record.key, PIECES_LIMIT))


def read(step: Step, name: QueueName, job_id: str, seen: tuple[int, int], limit: int) -> OutputPage:
    """Return the pieces behind the one of that epoch and number."""
    unit = find_unit(step, name)
    values = (unit.key if unit else None, job_id, step.now_ms, *seen, min(limit, OUTPUT_PAGE_LIMIT))
    rows = step.db.execute(_READ, values).fetchall()
    epoch, number = rows[-1][:2] if rows else seen
    return OutputPage([body for _, _, body in rows], f"{epoch}-{number}")

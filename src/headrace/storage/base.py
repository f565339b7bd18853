"""The port: what every storage does, in roles, so that each caller asks for the least.

These rules hold for every verb; `headrace.testing.contract` tests them.

- **One step.** A call is atomic: others see all that it does or nothing, and so does who looks
  after a crash. It concerns one queue of the storage's tenant, or the tenant's schedules. No other
  tenant's data are read, changed or counted.
- **Bounded.** Callers pass at most `BATCH_LIMIT` items and `BATCH_LIMIT_BYTES` of payloads,
  results or output: a payload or result at most 1 MiB, a piece of output 64 KiB. A verb that has
  more to do than its bound says so, and is called again. Where each item may let other jobs in,
  callers pass `MOVED_A_CALL`, so that no call takes much longer than another.
- **Checked values.** Names, ids and options were checked before they come here: queues and lanes
  match ``[A-Za-z0-9][A-Za-z0-9._-]{0,99}``; job ids and task names are 1 to 256 bytes of UTF-8
  without control characters, and a progress text has none either. Payloads, options, results and
  pieces of output are bytes that come back as they went in.
- **One clock.** The storage's own wall clock, read once a call, is the only one: callers' clocks
  differ. What is due at an instant is due from that millisecond on, and no earlier. It may be
  stepped, so whether a worker lives is never told by it.
- **One owner.** Whatever is written about an attempt shows its claim. It is current if epoch and
  nonce both equal the record's and the job is active. Any other changes nothing.
- **Lanes.** A job waits in the lane of its queue that says which kind of slot it needs: `default`,
  `process`, or another name. Order, claims, tokens and waiters are those of one lane.
- **Limits.** A job with gates is ready only while each of them has room for it, and is blocked
  else; `Limiter` says how. Others have none, and nothing is looked at for them.
- **Strikes.** A job that a strike meets is not run until that is lifted, and is blocked or
  cancelled; `Striker` says when. In a queue without strikes nothing is looked at for them.
- **One end.** The step that makes a state terminal also writes result or error, counters, event
  and retention, and tells the job's channels. No later call changes it, but for a redrive, a new
  job with the id of a failed or cancelled one, a purge, and the end of the retention.
- **Retention.** A completed or cancelled record lives for its ``keep_ms``, a dead letter for the
  queue's ``dead_letter_ttl_ms``; of each kind the oldest go when there are more than the queue
  keeps. With 0 nothing stays. A record whose time is over is as if it had never been, and its id
  is free again. A record that is not terminal never ends by time or number.
- **Tokens are hints.** Whatever makes a job ready, or brings the queue's first due time forward,
  leaves a wake-up token in the job's lane, at most one, for the waiters of that lane. What resumes
  a queue or ends an incarnation leaves one in every lane that has ready jobs, and in that of the
  next due one. A token may be lost or doubled; workers claim every two seconds besides.
- **Repetition.** A call with a `CallId` may come again with the same batch, because its answer was
  lost: it changes nothing and answers the same. A number that is too old to be remembered raises
  `StaleCall` and changes nothing. Other verbs do no harm when they are called twice.
- **Kinds.** `reads` and `writes` beside a signature say what its verb may do (`Verb`); `VERBS` has
  that of each by its name.
- **Errors.** `StorageUnavailable`: not done, try again. `ReplyLost`: perhaps done. `StorageFull`:
  no room, nothing was written; only verbs that grow may raise it, so that a full storage drains.
  `StorageRefused`: it can't be used as it is. `StorageFault`: anything else. No exception of a
  driver comes out. A caller may cancel a call: it is done or not, and the storage works on.

A storage serves one event loop; only a `Beater` is used in another thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headrace.errors import StorageRefused
from headrace.storage.connections import Beater, Channel, Waiter
from headrace.storage.roles.admin import Admin
from headrace.storage.roles.bulk_reader import BulkReader
from headrace.storage.roles.bulk_writer import BulkWriter
from headrace.storage.roles.consumer import Consumer
from headrace.storage.roles.doctor import Doctor
from headrace.storage.roles.inspector import Inspector
from headrace.storage.roles.limiter import Limiter
from headrace.storage.roles.maintenance import Maintenance
from headrace.storage.roles.producer import Producer
from headrace.storage.roles.scheduler import Scheduler
from headrace.storage.roles.striker import Striker
from headrace.storage.verbs import Verb, verbs_of

__all__ = [
    "VERBS",
    "Admin",
    "Beater",
    "BulkReader",
    "BulkWriter",
    "Channel",
    "Consumer",
    "Doctor",
    "Inspector",
    "Limiter",
    "Maintenance",
    "Producer",
    "Scheduler",
    "Storage",
    "Striker",
    "Verb",
    "Waiter",
    "check_has_limits",
    "check_has_strikes",
    "check_keeps_schedules",
    "check_reads_in_bulk",
    "check_tells_why",
    "check_writes_in_bulk",
    "keeps_schedules",
    "writes_in_bulk",
]


class Storage(
    Producer,
    Consumer,
    Maintenance,
    Inspector,
    Admin,
    Limiter,
    Striker,
    Scheduler,
    BulkWriter,
    BulkReader,
    Doctor,
    Protocol,
):
    """All roles, for one tenant. Making one does no I/O.

    Those made from one another by `for_tenant` share connections. A storage uses them from its
    first call on until its `aclose`, and the last that uses them closes them: so whoever has made
    calls through a storage closes that one, and cuts no other off. What `open_channel`,
    `open_waiter` and `open_beater` return is closed by who opened it.

    Attributes:
        tenant: whose queues these are.
    """

    tenant: str

    def for_tenant(self, tenant: str) -> Storage:
        """Return the storage of any tenant, over the same connections and for the same event loop.

        Raises:
            InvalidOption: that is no name of a tenant.
        """

    async def aclose(self) -> None:
        """Close every connection that no other storage uses.

        Later calls connect again; a second call is no error.
        """


VERBS: Mapping[str, Verb] = verbs_of(*Storage.__bases__, Beater)
"""What every verb is."""


def keeps_schedules(storage: object) -> bool:
    """Whether a storage has the role `Scheduler`: one of another distribution may lack it."""
    return not _lacking(storage, Scheduler)


def writes_in_bulk(storage: object) -> bool:
    """Whether a storage has the role `BulkWriter`: one of another distribution may lack it."""
    return not _lacking(storage, BulkWriter)


def check_keeps_schedules(storage: object) -> None:
    """See that a storage has the role `Scheduler`, before schedules are used.

    Raises:
        StorageRefused: it lacks the role, or a part of it.
    """
    _check(storage, Scheduler, "keeps no schedules")


def check_has_limits(storage: object) -> None:
    """See that a storage has the role `Limiter`, before limits are steered or shown.

    Raises:
        StorageRefused: it lacks the role, or a part of it.
    """
    _check(storage, Limiter, "has no limits")


def check_tells_why(storage: object) -> None:
    """See that a storage has all of the role `Inspector`, before it is asked why a job waits.

    Raises:
        StorageRefused: it lacks a part of it: `Inspector.why` is newer than the others.
    """
    _check(storage, Inspector, "can't tell why a job does not run")


def check_has_strikes(storage: object) -> None:
    """See that a storage has the role `Striker`, before jobs are struck or a task is paused.

    Raises:
        StorageRefused: it lacks the role, or a part of it.
    """
    _check(storage, Striker, "has no strikes")


def check_writes_in_bulk(storage: object) -> None:
    """See that a storage has the role `BulkWriter`, before anything is staged.

    Raises:
        StorageRefused: it lacks the role, or a part of it.
    """
    _check(storage, BulkWriter, "has no bulk writes")


def check_reads_in_bulk(storage: object) -> None:
    """See that a storage has the role `BulkReader`, before a pipeline reads.

    Raises:
        StorageRefused: it lacks the role, or a part of it.
    """
    _check(storage, BulkReader, "has no bulk reads of events")


def _check(storage: object, role: type, failing: str) -> None:
    lacking = _lacking(storage, role)
    if lacking:
        raise StorageRefused(
            f"{type(storage).__name__} {failing}, since it lacks {', '.join(lacking)}: "
            "use Redis or the embedded storage, or a release of it that does"
        )


def _lacking(storage: object, role: type) -> list[str]:
    return sorted(verb for verb in verbs_of(role) if not callable(getattr(storage, verb, None)))

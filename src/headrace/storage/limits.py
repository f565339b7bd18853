"""The numbers of the contract: both storages keep to them, and so do those who call them.

Each is written here alone. Python imports it, SQL is given it, and the Lua library begins with a
table of them (``library.py``). What a single storage decides for itself stands with that storage.
"""

from __future__ import annotations

from headrace.fairness import FAIR_LIMIT as FAIR_LIMIT
from headrace.job import CHUNK_LIMIT_BYTES
from headrace.job import DEFAULT_IDEMPOTENCY_TTL_MS as DEFAULT_IDEMPOTENCY_TTL_MS
from headrace.job import DEFAULT_KEEP_MS as DEFAULT_KEEP_MS
from headrace.job import DEFAULT_LANE as DEFAULT_LANE
from headrace.job import DEFAULT_MAX_STALLS as DEFAULT_MAX_STALLS
from headrace.job import DEFAULT_PRIORITY as DEFAULT_PRIORITY
from headrace.job import SLOTS_LIMIT as SLOTS_LIMIT
from headrace.job import WAITED_RESULT_TTL_MS as WAITED_RESULT_TTL_MS

BATCH_LIMIT = 500
"""Most jobs in one call."""

BATCH_LIMIT_BYTES = 4 * 1024 * 1024
"""Most bytes of payloads or results in one call."""

PIECES_LIMIT = 1_000
"""Most pieces of output in one call, of all its jobs together: as many as are kept of each."""

OUTPUT_PAGE_LIMIT = BATCH_LIMIT_BYTES // CHUNK_LIMIT_BYTES
"""Most pieces in one page of output, so that it keeps to the bytes of a call."""

EXPORT_PAGE_LIMIT = 200
"""Most jobs in one page of an export; they have `BATCH_LIMIT_BYTES` together at most."""

EXPORT_LOOKS = 500
"""Places that one page of an export looks at, those of other states and of gone records too."""

OUTPUT_TTL_MS = 3_600_000
"""How long output is kept after its last piece, while its job is."""

MESSAGE_LIMIT_BYTES = 65_536
"""Longest result or error in a message to a waiter; longer ones are read by the waiter itself."""

CHANNELS_LIMIT = 64
"""Most channels that are told of one job's end; further waiters rest on their slow poll."""

ERRORS_KEPT = 10
"""Entries of a job's error history, the newest first."""

ROW_MESSAGE_LIMIT = 200
"""Most characters of an error's message in a row of a listing."""

ROW_ERROR_BYTES = 6 * ROW_MESSAGE_LIMIT + 400
"""Bytes of a stored error that hold so much of its message, behind the name of its type.

JSON writes a control character as six.
"""

DEFAULT_LEASE_MS = 15_000
"""The lease of an incarnation whose own can't be read."""

CLAIM_LOOKS = 1_000
"""Entries that a claim looks at in one lane, left-over ones included."""

SLOTS_LOOKS = 200
"""Most jobs of a lane that a claim passes over since they need more slots than the caller has."""

CLAIM_TURNS = 100
"""Starts of jobs that take turns, after which a claim ends with the look that it is at."""

STRUCK_LOOKS = 10
"""For how many of these a job counts that a strike keeps from being taken: it is moved."""

GATE_LOOKS = 10
"""Jobs of a line that are looked at for each place that came free in its gate."""

RECOUNT_LOOKS = 250
"""Jobs or gates that one call of a repair looks at to count the places of gates."""

RECOUNT_REST_MS = 600_000
"""How long a recount of more jobs than that is remembered; no sweep begins another one before,
unless one of fewer jobs has come between."""

GATES_LOOKS = 100
"""Jobs of lines that one call looks at where ends, due gates or new terms have given room.

A claim looks at as many of gates that are due, and at as many again of those that it frees itself.
"""

STRIKES_LIMIT = 100
"""Most strikes of a queue, its paused tasks among them."""

CANCELS_A_BEAT = 500
"""Most ids that are asked to stop in the answer to one beat."""

MOVED_A_CALL = 200
"""Most jobs that one call of ``reap`` or ``retire`` takes back, and that callers settle, cancel,
redrive, purge or put back in one: each may free places in four limits, and let others in."""

PRUNED_A_CALL = 200
"""Places that one call of ``prune`` looks at, in each of its pieces."""

CALLS_TTL_MS = 600_000
"""How long the answer of a numbered call is remembered."""

EVENTS_AN_ENTRY = 20
"""Most events in one entry of the event stream."""

EVENTS_TRIMMED_A_CALL = 2_000
"""Most entries of events that one call trims once readers hold them back no more."""

EVENT_LINES_LIMIT = 1_000
"""Most entries of events in one page of their lines."""

READERS_LIMIT = 100
"""Most readers of a queue's events."""

READER_TTL_MS = 7 * 24 * 3_600_000
"""How long a reader is kept that acknowledges nothing."""

STATS_BUCKET_MS = 10_000
"""The span of time that is counted together."""

STATS_BUCKETS = 6
"""How many of these spans `stats` tells of, the present one among them."""

STATS_TTL_MS = 3_600_000
"""How long they are kept."""

DEFAULT_HISTORY = 100_000
"""Completed and cancelled records of a queue."""

DEFAULT_DEAD_LETTERS = 10_000
"""Dead letters of a queue."""

DEFAULT_DEAD_LETTER_TTL_MS = 30 * 24 * 3_600_000
"""How long a dead letter is kept."""

DEFAULT_EVENTS = 5_000
"""Entries of a queue's event stream."""

DEFAULT_EVENTS_CAP = 50_000
"""Entries of it while a reader has not acknowledged them."""

DAMAGED_TTL_MS = 7 * 24 * 3_600_000
"""How long strange data that were set aside are kept."""

STAGES_LIMIT = 2_000
"""Most stages in one call: so many that none needs over 5 ms."""

DEFAULT_STAGE_TTL_MS = 6 * 3_600_000
"""How long a stage is kept that nobody commits."""

DEFAULT_WRITE_KEEP_MS = 7 * 24 * 3_600_000
"""How long a write is known once it is published."""

SCHEDULES_LIMIT = 100_000
"""Most schedules of a tenant."""

SCHEDULES_PAGE_LIMIT = 500
"""Most schedules in one page of a listing."""

SCHEDULE_HISTORY = 100
"""Entries of a schedule's history, the newest first."""

SCHEDULES_HEARD_MS = 10_000
"""How long a channel is told of schedules after it was named last."""

FIRED_TTL_MS = 7 * 24 * 3_600_000
"""How long the last fired instant of a schedule is kept after that instant."""

RELEASES_TTL_MS = 30 * 24 * 3_600_000
"""How long a release of an app is remembered after it was heard of last."""

RELEASE_LEFT_MS = 6_000
"""How long after its last join a release is alive of which a process has left: others join again.

Longer than the time between two joins of a process.
"""

BEFORE_REACH = 10_000
"""Jobs up to which a place in a line is counted where it can't be looked up; beyond, "at least"."""

BEFORE_LOOKS = 200
"""Entries that are looked at one by one to tell jobs from what is left of others."""

HOLDERS_LIMIT = 10
"""Most jobs that are named as those that have the places of a gate."""

HOLDERS_LOOKS = 200
"""Jobs among which they are looked for: of those that run, and of those that are ready.

A worker that is asked for its jobs counts as one, and so does a line.
"""

WHY_WORKERS = 100
"""Most live workers that `why` tells of."""

WHY_BEATS = 500
"""Workers, dead ones too, among which it looks for them."""

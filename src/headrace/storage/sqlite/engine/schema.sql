-- One storage's data. What ends in `_ms` is a span, or an instant since the epoch by the storage's
-- clock. A record whose `purge_at_ms` has passed is gone: every reader looks, and `prune` deletes it.

-- A queue with its settings, the counts of its jobs, and where its sequences stand: `tail` and
-- `head` order what is ready, and `front` what was taken from the head and struck; `event` numbers the
-- event entries and `told` the events, `wake` counts the wake-ups, `aged` the jobs that were taken since
-- the last of a lower tier. `events` entries are kept, and up to `events_cap` while a reader has not seen
-- them.
-- `gate_due_ms` is when the first of its gates is due. `is_struck` says that a strike names no more
-- than a task, `has_conditions` that one says what arguments are to be, and `strikes_version` counts
-- the changes of these.
CREATE TABLE queues (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  is_listed INTEGER NOT NULL DEFAULT 0,
  is_paused INTEGER NOT NULL DEFAULT 0,
  history INTEGER NOT NULL,
  dead_letters INTEGER NOT NULL,
  dead_letter_ttl_ms INTEGER NOT NULL,
  events INTEGER NOT NULL,
  queued INTEGER NOT NULL DEFAULT 0,
  scheduled INTEGER NOT NULL DEFAULT 0,
  retrying INTEGER NOT NULL DEFAULT 0,
  active INTEGER NOT NULL DEFAULT 0,
  finished INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  head INTEGER NOT NULL DEFAULT 0,
  tail INTEGER NOT NULL DEFAULT 0,
  event INTEGER NOT NULL DEFAULT 0,
  wake INTEGER NOT NULL DEFAULT 0,
  told INTEGER NOT NULL DEFAULT 0,
  events_cap INTEGER NOT NULL DEFAULT 50000,
  blocked INTEGER NOT NULL DEFAULT 0,
  on_failed TEXT NOT NULL DEFAULT '',
  max_active INTEGER NOT NULL DEFAULT 0,
  max_length INTEGER NOT NULL DEFAULT 0,
  gate_due_ms INTEGER,
  is_struck INTEGER NOT NULL DEFAULT 0,
  has_conditions INTEGER NOT NULL DEFAULT 0,
  strikes_version INTEGER NOT NULL DEFAULT 0,
  front INTEGER NOT NULL DEFAULT 0,
  weight INTEGER NOT NULL DEFAULT 0,
  aging INTEGER NOT NULL DEFAULT 0,
  aged INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant, name)
) STRICT;

-- Its place is one of four columns: `seq` is set while queued, `due_ms` while scheduled or
-- retrying, `owner` (an incarnation's key) while active, `purge_at_ms` once ended. Of an id there is
-- one job, and while it is active there may be one more, which waits for its end: `is_next`. That has
-- no place, and `next_due_ms` says when it is to be due; `next_update` of the active one says what it
-- takes from that one if it waits again, and is empty without it. `on_failed` is the task of its fail
-- job; NULL: as the queue says, '': it has none. `gates` are those of its limits, a line each, and
-- `parked` is that, or the strike, in whose line it is blocked, in which `number` is its place: the
-- `seq` that it got when it came. While it is active it holds so many `slots` of its lane. A payload
-- over 256 bytes lies beside, since every move of a job writes its whole row.
CREATE TABLE jobs (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  is_next INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL,
  task TEXT NOT NULL,
  payload BLOB,
  tier INTEGER NOT NULL,
  lane TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL,
  seq INTEGER,
  due_ms INTEGER,
  owner INTEGER,
  purge_at_ms INTEGER,
  expires_at_ms INTEGER NOT NULL DEFAULT 0,
  max_stalls INTEGER NOT NULL,
  keep_ms INTEGER NOT NULL,
  options BLOB NOT NULL,
  channels TEXT,
  joined INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  nonce TEXT NOT NULL DEFAULT '',
  failures INTEGER NOT NULL DEFAULT 0,
  stalls INTEGER NOT NULL DEFAULT 0,
  cancel INTEGER NOT NULL DEFAULT 0,
  put_back TEXT,
  run_ms INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  result BLOB,
  result_purge_at_ms INTEGER,
  progress REAL,
  progress_text TEXT NOT NULL DEFAULT '',
  progress_epoch INTEGER NOT NULL DEFAULT 0,
  next_update TEXT NOT NULL DEFAULT '',
  next_due_ms INTEGER NOT NULL DEFAULT 0,
  on_failed TEXT,
  gates TEXT,
  parked TEXT,
  number INTEGER,
  slots INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX jobs_id ON jobs (queue, id, is_next);
CREATE INDEX jobs_ready ON jobs (queue, lane, tier DESC, seq) WHERE seq IS NOT NULL;
CREATE INDEX jobs_delayed ON jobs (queue, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX jobs_owned ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (queue, state, changed_ms) WHERE purge_at_ms IS NOT NULL;
CREATE INDEX jobs_parked ON jobs (queue, parked, tier DESC, number) WHERE parked IS NOT NULL;
CREATE INDEX jobs_blocked ON jobs (queue, created_ms) WHERE state = 'blocked';
CREATE INDEX jobs_purged ON jobs (queue, purge_at_ms) WHERE purge_at_ms IS NOT NULL;

CREATE TABLE payloads (job INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

-- Pieces of a job's output, numbered within an attempt.
CREATE TABLE outputs (
  job INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (job, epoch, number)
) STRICT, WITHOUT ROWID;

-- The last errors of a job, as JSON.
CREATE TABLE errors (
  key INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  start INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX errors_job ON errors (job);

-- Incarnations, with the number of their beats and the last numbers of their calls.
CREATE TABLE incarnations (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  info BLOB NOT NULL,
  channel TEXT NOT NULL DEFAULT '',
  lease_ms INTEGER NOT NULL,
  registered_ms INTEGER NOT NULL,
  beat_ms INTEGER NOT NULL,
  beat INTEGER NOT NULL DEFAULT 0,
  is_condemned INTEGER NOT NULL DEFAULT 0,
  claim INTEGER NOT NULL DEFAULT 0,
  settle INTEGER NOT NULL DEFAULT 0,
  settled TEXT NOT NULL DEFAULT '',
  last_chance INTEGER,
  UNIQUE (queue, name)
) STRICT;

-- The lanes of tasks, as workers have said, but for the default one.
CREATE TABLE lanes (
  queue INTEGER NOT NULL,
  task TEXT NOT NULL,
  lane TEXT NOT NULL,
  PRIMARY KEY (queue, task)
) STRICT, WITHOUT ROWID;

-- Strikes: which jobs are not to be run, of a task or, with '', of any. `conditions` is what their
-- arguments are to be, which workers read, '' for anything.
CREATE TABLE strikes (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  task TEXT NOT NULL,
  conditions TEXT NOT NULL,
  action TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

-- The terms of limits, as `Terms.text` has them: what workers and jobs declare, and what an operator
-- has set over that; '' for none. `opened` is the gate up to which lines were opened since they
-- changed, NULL once all were.
CREATE TABLE limits (
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  declared TEXT NOT NULL DEFAULT '',
  operator TEXT NOT NULL DEFAULT '',
  opened TEXT,
  PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;

-- Gates in which a job has a place, or whose tokens are not all there: a limit's name, a tab and a
-- key. `owed` is what its bucket lacked at `owed_at_ms`: each millisecond pays `rate` of it, and a
-- start takes `rate_ms`. `due_ms` is when its line is to be looked at, `full_ms` when one without
-- jobs may be forgotten.
CREATE TABLE gates (
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  ready INTEGER NOT NULL,
  active INTEGER NOT NULL,
  owed INTEGER NOT NULL,
  owed_at_ms INTEGER NOT NULL,
  rate INTEGER NOT NULL,
  rate_ms INTEGER NOT NULL,
  due_ms INTEGER,
  full_ms INTEGER,
  PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX gates_due ON gates (queue, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX gates_full ON gates (queue, full_ms) WHERE full_ms IS NOT NULL;

-- The last two calls of each client that enqueues: a letter a job, and ids that it was answered.
CREATE TABLE calls (
  queue INTEGER NOT NULL,
  client TEXT NOT NULL,
  slot INTEGER NOT NULL,
  number INTEGER NOT NULL,
  answer TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (queue, client, slot)
) STRICT, WITHOUT ROWID;

-- Entries of 1 to 20 events; the key is the queue's, shifted by 40 bits, and the entry's number. `n`
-- is the number of its last event.
CREATE TABLE events (
  key INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  lines TEXT NOT NULL,
  n INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Named readers of a queue's events, with the last entry that each has acknowledged as a whole, the
-- number of the last event, and when it did so.
CREATE TABLE readers (
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  entry INTEGER NOT NULL,
  entry_ms INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE stats (
  queue INTEGER NOT NULL,
  bucket_ms INTEGER NOT NULL,
  field TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (queue, bucket_ms, field)
) STRICT, WITHOUT ROWID;

-- What waiters of other processes are to be told.
CREATE TABLE messages (
  key INTEGER PRIMARY KEY,
  process TEXT NOT NULL,
  channel TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- `look_ms` is when a scheduler is to look at a schedule: when it is due, or its hold ends.
CREATE TABLE schedules (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  app TEXT NOT NULL,
  version INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  look_ms INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedules_id ON schedules (tenant, id);
CREATE INDEX schedules_app ON schedules (tenant, app, id) WHERE app <> '';
CREATE INDEX schedules_look ON schedules (tenant, look_ms);

-- What happened at a schedule's last instants.
CREATE TABLE schedule_history (
  key INTEGER PRIMARY KEY,
  schedule INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX schedule_history_schedule ON schedule_history (schedule);

-- The channels that are told where a tenant's first due instant comes forward.
CREATE TABLE schedule_listeners (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  channel TEXT NOT NULL,
  named_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedule_listeners_channel ON schedule_listeners (tenant, channel);
CREATE INDEX schedule_listeners_named ON schedule_listeners (named_ms);

-- The releases of apps; `place` orders those of one app.
CREATE TABLE schedule_releases (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  app TEXT NOT NULL,
  digest TEXT NOT NULL,
  place INTEGER NOT NULL,
  joined_ms INTEGER NOT NULL,
  has_left INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX schedule_releases_digest ON schedule_releases (tenant, app, digest);
CREATE INDEX schedule_releases_joined ON schedule_releases (joined_ms);

-- Keys that callers chose, by name, and the id of the first job with each.
CREATE TABLE idempotency (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  job TEXT NOT NULL,
  purge_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX idempotency_name ON idempotency (queue, name);
CREATE INDEX idempotency_purged ON idempotency (queue, purge_at_ms);

-- The last instant of each schedule that was fired in a queue.
CREATE TABLE fired (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  schedule TEXT NOT NULL,
  instant_ms INTEGER NOT NULL,
  purge_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX fired_schedule ON fired (queue, schedule);
CREATE INDEX fired_purged ON fired (purge_at_ms);

-- What a writer has staged for a write, in chunks of a call each; `place` orders the stages that are
-- committed and to be published. Of a token there may be others whose time is over.
CREATE TABLE stages (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  write_id TEXT NOT NULL,
  token TEXT NOT NULL,
  jobs INTEGER NOT NULL,
  place INTEGER,
  purge_at_ms INTEGER
) STRICT;
CREATE INDEX stages_token ON stages (queue, write_id, token);
CREATE INDEX stages_place ON stages (queue, place) WHERE place IS NOT NULL;
CREATE INDEX stages_purged ON stages (queue, purge_at_ms) WHERE purge_at_ms IS NOT NULL;
CREATE TABLE staged (
  key INTEGER PRIMARY KEY,
  stage INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX staged_stage ON staged (stage);

-- Committed writes: their last batch, the stages that are left to publish, and what came of them.
CREATE TABLE writes (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  batch INTEGER NOT NULL,
  stages_left INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  added INTEGER NOT NULL,
  keep_ms INTEGER NOT NULL,
  purge_at_ms INTEGER
) STRICT;
CREATE UNIQUE INDEX writes_id ON writes (queue, id);
CREATE INDEX writes_purged ON writes (queue, purge_at_ms) WHERE purge_at_ms IS NOT NULL;

-- The tables of schema 1, in which a `dies` was what is `purge_at_ms` today. schema.sql explains them.

-- A queue with its settings, the counts of its jobs, and where its sequences stand: `tail` and
-- `head` order what is ready, `event` numbers the event entries, `wake` counts the wake-ups.
CREATE TABLE queues (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  is_listed INTEGER NOT NULL DEFAULT 0,
  is_paused INTEGER NOT NULL DEFAULT 0,
  history INTEGER NOT NULL DEFAULT 100000,
  dead_letters INTEGER NOT NULL DEFAULT 10000,
  dead_letter_ttl_ms INTEGER NOT NULL DEFAULT 2592000000,
  events INTEGER NOT NULL DEFAULT 5000,
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
  UNIQUE (tenant, name)
) STRICT;

-- `seq` is set while queued, `due` while scheduled or retrying, `owner` (a worker's key) while
-- active, `dies` once ended. A payload over 256 bytes lies beside, since every move of a job
-- writes its whole row.
CREATE TABLE jobs (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  state TEXT NOT NULL,
  task TEXT NOT NULL,
  payload BLOB,
  tier INTEGER NOT NULL,
  lane TEXT NOT NULL,
  created INTEGER NOT NULL,
  at INTEGER NOT NULL,
  seq INTEGER,
  due INTEGER,
  owner INTEGER,
  dies INTEGER,
  expires INTEGER NOT NULL DEFAULT 0,
  max_stalls INTEGER NOT NULL,
  keep INTEGER NOT NULL,
  options BLOB NOT NULL,
  inbox TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  nonce TEXT NOT NULL DEFAULT '',
  attempts INTEGER NOT NULL DEFAULT 0,
  stalls INTEGER NOT NULL DEFAULT 0,
  cancel INTEGER NOT NULL DEFAULT 0,
  released INTEGER,
  run INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  result BLOB,
  result_dies INTEGER,
  progress REAL,
  progress_text TEXT NOT NULL DEFAULT '',
  progress_epoch INTEGER NOT NULL DEFAULT 0,
  UNIQUE (queue, id)
) STRICT;
CREATE INDEX jobs_ready ON jobs (queue, lane, tier DESC, seq) WHERE seq IS NOT NULL;
CREATE INDEX jobs_due ON jobs (queue, due) WHERE due IS NOT NULL;
CREATE INDEX jobs_owned ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (queue, state, at) WHERE dies IS NOT NULL;
CREATE INDEX jobs_dying ON jobs (queue, dies) WHERE dies IS NOT NULL;

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
  at INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX errors_job ON errors (job);

-- Incarnations, with the last numbers of their calls.
CREATE TABLE workers (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  incarnation TEXT NOT NULL,
  info BLOB NOT NULL,
  channel TEXT NOT NULL DEFAULT '',
  lease_ms INTEGER NOT NULL,
  since INTEGER NOT NULL,
  at INTEGER NOT NULL,
  beat INTEGER NOT NULL DEFAULT 0,
  is_condemned INTEGER NOT NULL DEFAULT 0,
  claim INTEGER NOT NULL DEFAULT 0,
  settle INTEGER NOT NULL DEFAULT 0,
  settled TEXT NOT NULL DEFAULT '',
  last_chance INTEGER,
  UNIQUE (queue, incarnation)
) STRICT;

-- The lanes of tasks, as workers have said, but for the default one.
CREATE TABLE lanes (
  queue INTEGER NOT NULL,
  task TEXT NOT NULL,
  lane TEXT NOT NULL,
  PRIMARY KEY (queue, task)
) STRICT, WITHOUT ROWID;

-- The last two calls of each client that enqueues: a letter a job.
CREATE TABLE calls (
  queue INTEGER NOT NULL,
  client TEXT NOT NULL,
  slot INTEGER NOT NULL,
  number INTEGER NOT NULL,
  answer TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (queue, client, slot)
) STRICT, WITHOUT ROWID;

-- Entries of 1 to 20 events; the key is the queue's, shifted by 40 bits, and the entry's number.
CREATE TABLE events (key INTEGER PRIMARY KEY, at INTEGER NOT NULL, lines TEXT NOT NULL) STRICT;

CREATE TABLE stats (
  queue INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  field TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (queue, bucket, field)
) STRICT, WITHOUT ROWID;

-- What waiters of other processes are to be told.
CREATE TABLE messages (
  key INTEGER PRIMARY KEY,
  process TEXT NOT NULL,
  channel TEXT NOT NULL,
  at INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

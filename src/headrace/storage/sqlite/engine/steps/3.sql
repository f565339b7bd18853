-- Spans and instants have their unit in their name, and an id has room for a job that waits for the
-- end of the one before. Tables whose rules change are made anew.

ALTER TABLE queues RENAME TO queues_2;
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
  UNIQUE (tenant, name)
) STRICT;
INSERT INTO queues SELECT * FROM queues_2;
DROP TABLE queues_2;

ALTER TABLE jobs RENAME TO jobs_2;
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
  progress_epoch INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO jobs (
  key, queue, id, state, task, payload, tier, lane, created_ms, changed_ms, seq, due_ms, owner,
  purge_at_ms, expires_at_ms, max_stalls, keep_ms, options, channels, joined, epoch, nonce,
  failures, stalls, cancel, run_ms, reason, error, result, result_purge_at_ms,
  progress, progress_text, progress_epoch
)
SELECT
  key, queue, id, state, task, payload, tier, lane, created, at, seq, due, owner, dies, expires,
  max_stalls, keep, options, inbox, joined, epoch, nonce, attempts, stalls, cancel, run,
  reason, error, result, result_dies, progress, progress_text, progress_epoch
FROM jobs_2;
DROP TABLE jobs_2;
CREATE UNIQUE INDEX jobs_id ON jobs (queue, id, is_next);
CREATE INDEX jobs_ready ON jobs (queue, lane, tier DESC, seq) WHERE seq IS NOT NULL;
CREATE INDEX jobs_delayed ON jobs (queue, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX jobs_owned ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (queue, state, changed_ms) WHERE purge_at_ms IS NOT NULL;
CREATE INDEX jobs_purged ON jobs (queue, purge_at_ms) WHERE purge_at_ms IS NOT NULL;

ALTER TABLE workers RENAME TO incarnations;
ALTER TABLE incarnations RENAME COLUMN incarnation TO name;
ALTER TABLE incarnations RENAME COLUMN since TO registered_ms;
ALTER TABLE incarnations RENAME COLUMN at TO beat_ms;
ALTER TABLE errors RENAME COLUMN at TO at_ms;
ALTER TABLE errors RENAME COLUMN attempt TO start;
ALTER TABLE calls RENAME COLUMN at TO at_ms;
ALTER TABLE events RENAME COLUMN at TO at_ms;
ALTER TABLE messages RENAME COLUMN at TO at_ms;
ALTER TABLE stats RENAME COLUMN bucket TO bucket_ms;

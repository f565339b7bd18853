-- Limits, their gates, and bounds of queues; schema.sql explains the tables.

ALTER TABLE queues ADD COLUMN max_active INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN max_length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN gate_due_ms INTEGER;
ALTER TABLE jobs ADD COLUMN gates TEXT;
ALTER TABLE jobs ADD COLUMN parked TEXT;
ALTER TABLE jobs ADD COLUMN number INTEGER;
CREATE INDEX jobs_parked ON jobs (queue, parked, tier DESC, number) WHERE parked IS NOT NULL;
DROP INDEX jobs_blocked;
CREATE INDEX jobs_blocked ON jobs (queue, created_ms) WHERE state = 'blocked';

CREATE TABLE limits (
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  declared TEXT NOT NULL DEFAULT '',
  operator TEXT NOT NULL DEFAULT '',
  opened TEXT,
  PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;

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

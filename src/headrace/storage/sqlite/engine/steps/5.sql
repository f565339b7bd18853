-- Numbers of events, readers of them, and staged writes; schema.sql explains the tables.

ALTER TABLE queues ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN events_cap INTEGER NOT NULL DEFAULT 50000;
ALTER TABLE events ADD COLUMN n INTEGER NOT NULL DEFAULT 0;

CREATE TABLE readers (
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  entry INTEGER NOT NULL,
  entry_ms INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;

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

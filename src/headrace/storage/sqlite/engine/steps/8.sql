-- Idempotency keys; schema.sql explains the table.

CREATE TABLE idempotency (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  job TEXT NOT NULL,
  purge_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX idempotency_name ON idempotency (queue, name);
CREATE INDEX idempotency_purged ON idempotency (queue, purge_at_ms);

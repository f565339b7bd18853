-- Strikes and weights; schema.sql explains the table and the columns.

ALTER TABLE queues ADD COLUMN is_struck INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN has_conditions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN strikes_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN front INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN weight INTEGER NOT NULL DEFAULT 0;

CREATE TABLE strikes (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  task TEXT NOT NULL,
  conditions TEXT NOT NULL,
  action TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

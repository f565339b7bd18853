-- Jobs that are blocked by the active one of their id; schema.sql explains the columns.

ALTER TABLE queues ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN next_update TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN next_due_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_blocked ON jobs (queue, created_ms) WHERE is_next = 1;

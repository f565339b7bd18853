-- Fail jobs; schema.sql explains the columns.

ALTER TABLE queues ADD COLUMN on_failed TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN on_failed TEXT;

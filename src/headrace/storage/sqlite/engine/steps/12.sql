-- Tiers that age; schema.sql explains the columns.

ALTER TABLE queues ADD COLUMN aging INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN aged INTEGER NOT NULL DEFAULT 0;

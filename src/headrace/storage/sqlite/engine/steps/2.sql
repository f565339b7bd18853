-- `joined`: a later enqueue waits for the result too, so that it is kept for a minute at least.
ALTER TABLE jobs ADD COLUMN joined INTEGER NOT NULL DEFAULT 0;

-- Schedules; schema.sql explains the tables.

CREATE TABLE schedules (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  app TEXT NOT NULL,
  version INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  look_ms INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedules_id ON schedules (tenant, id);
CREATE INDEX schedules_app ON schedules (tenant, app, id) WHERE app <> '';
CREATE INDEX schedules_look ON schedules (tenant, look_ms);

CREATE TABLE schedule_history (
  key INTEGER PRIMARY KEY,
  schedule INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX schedule_history_schedule ON schedule_history (schedule);

CREATE TABLE schedule_listeners (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  channel TEXT NOT NULL,
  named_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedule_listeners_channel ON schedule_listeners (tenant, channel);
CREATE INDEX schedule_listeners_named ON schedule_listeners (named_ms);

CREATE TABLE schedule_releases (
  key INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  app TEXT NOT NULL,
  digest TEXT NOT NULL,
  place INTEGER NOT NULL,
  joined_ms INTEGER NOT NULL,
  has_left INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX schedule_releases_digest ON schedule_releases (tenant, app, digest);
CREATE INDEX schedule_releases_joined ON schedule_releases (joined_ms);

CREATE TABLE fired (
  key INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  schedule TEXT NOT NULL,
  instant_ms INTEGER NOT NULL,
  purge_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX fired_schedule ON fired (queue, schedule);
CREATE INDEX fired_purged ON fired (purge_at_ms);

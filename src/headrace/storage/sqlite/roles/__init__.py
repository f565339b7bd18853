"""The roles of the storage on SQLite, a class each: what `SqliteStorage` puts together."""

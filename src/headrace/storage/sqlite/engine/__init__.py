"""The database and its one thread, the calls it makes, and how processes wake each other."""

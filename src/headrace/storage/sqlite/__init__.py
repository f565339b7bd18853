"""The embedded storage on SQLite: ``memory://`` and ``file:///dir``."""

"""The storage on Redis and Valkey."""

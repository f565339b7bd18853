"""The archive of events and dead letters, and what is made of it."""

"""One executable model of the storage, and the machine that compares each storage with it."""

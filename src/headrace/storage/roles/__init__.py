"""The roles of a storage, a file each: what `headrace.storage.base` puts together."""

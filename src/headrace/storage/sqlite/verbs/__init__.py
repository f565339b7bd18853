"""What decides: a function a verb, each in one call of the writer."""

"""Where jobs are kept: the port, and its implementations."""

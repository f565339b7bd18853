"""The worker: claims jobs, runs their handlers, records what they came to."""

"""Benchmarks: one scenario a module, run by ``python -m benchmarks``; see README.md."""

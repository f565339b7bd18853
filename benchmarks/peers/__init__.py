"""headrace beside other job queues, each in its own environment; see benchmarks/README.md."""

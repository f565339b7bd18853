"""How cost grows with the backlog, queues, workers, payloads and slots, and what a job weighs.

``python -m benchmarks.growth`` runs it; each part is a module of its own.
"""

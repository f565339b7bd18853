"""What happened, as log lines: their names and fields, where they go, and how they look.

Never arguments, results or credentials. A library leaves logging to its program: only the command
line sets any up (`headrace.logs.setup`).
"""

"""A soak of real processes under faults: what it does, what breaks, and what must hold after it."""

"""Process slots: what runs the attempts of tasks with ``executor="process"``."""

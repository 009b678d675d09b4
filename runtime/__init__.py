"""Running partitioned graphs: memory plans, schedules, the NumPy engine, and training on top of it."""

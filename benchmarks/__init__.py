"""Measurements, which assert nothing: `python -m benchmarks.NAME` from the root of the repository."""

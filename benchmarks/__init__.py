"""What is measured rather than asserted: `python -m benchmarks.NAME` from the root of the repository."""

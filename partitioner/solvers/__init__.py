"""Minimise sums of tables: exactly, with a bound, or anytime. Nothing here knows of tensors or plans."""

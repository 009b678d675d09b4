"""Whole operations on workers: what is placed, on which devices, how long it takes and what it needs."""

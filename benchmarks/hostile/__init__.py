"""Hostile input of every kind, drawn by a seed: texts, nesting, files, plans, and kills at every write."""

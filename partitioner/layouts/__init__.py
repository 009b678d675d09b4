"""Layouts: which worker holds or computes which box."""

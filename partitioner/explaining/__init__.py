"""Explain what a plan decides, and why."""

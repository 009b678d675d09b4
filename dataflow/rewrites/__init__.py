"""Rewrites of training graphs for data parallelism: what happens to a gradient on its way to the update."""

"""The consequences of a description: regions, extents, strategies and adjoints."""

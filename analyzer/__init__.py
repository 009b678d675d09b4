"""What follows from a description: regions, extents, strategies and adjoints."""

"""A description's analysis, and what it gives for concrete shapes."""

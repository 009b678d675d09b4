"""What a syntax tree must keep to: names, ranks, indices, extents."""

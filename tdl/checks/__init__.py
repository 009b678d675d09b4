"""The rules of a syntax tree: names, ranks, indices, extents."""

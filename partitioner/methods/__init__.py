"""Search methods, their registry, and the way from a graph to a plan."""

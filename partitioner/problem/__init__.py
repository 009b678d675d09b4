"""The search's view of a graph: classes, links, candidates, tables, constraints, objectives."""

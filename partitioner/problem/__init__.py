"""The graph as the search sees it: classes, links, candidates, tables, constraints, objectives."""

"""Annealing: better plans than other methods make, found by moves that know the graph."""

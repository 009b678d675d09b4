"""Graphs: symbols, shape inference, differentiation, the training graph and its partitioned form."""

"""Tofu trains models that do not fit one GPU by partitioning every operator and tensor."""

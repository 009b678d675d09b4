"""Expressions with equal subexpressions shared, from which kernels are derived, and what computes them."""

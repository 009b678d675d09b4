"""Operators as stages: described, specialised, bound to shapes, with kernels attached."""

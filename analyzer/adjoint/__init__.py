"""Gradients of descriptions, as descriptions."""

from .description import adjoint, head_names, output_names

__all__ = ["adjoint", "head_names", "output_names"]

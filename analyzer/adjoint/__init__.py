"""Gradients of descriptions, as descriptions."""

from .description import adjoint, head_names, output_names
from .opaque_calls import gradient_name

__all__ = ["adjoint", "gradient_name", "head_names", "output_names"]

"""Hand-made partitioned graphs, see `toy_programs`, and the machine's compiler, see `native_kernels`."""

from ..native_kernels import compiler, kept_kernels, native
from ..toy_programs import toys

__all__ = ["compiler", "kept_kernels", "native", "toys"]

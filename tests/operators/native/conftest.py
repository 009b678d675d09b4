"""The machine's compiler, see `native_kernels`."""

from ...native_kernels import compiler, kept_kernels, native

__all__ = ["compiler", "kept_kernels", "native"]

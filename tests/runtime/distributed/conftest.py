"""Stand-ins for cards, see `tests/runtime/cuda`."""

from ..cuda.conftest import benches, host

__all__ = ["benches", "host"]

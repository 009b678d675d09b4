"""Hand-made partitioned graphs, see `toy_programs`."""

from ..toy_programs import toys

__all__ = ["toys"]

"""The error that MXNet scripts catch, and the types they check for."""

from __future__ import annotations

from ..errors import TofuError as MXNetError

__all__ = ["MXNetError", "numeric_types", "string_types"]

string_types = (str,)
numeric_types = (int, float)

"""The model zoo: `get("wresnet-50-4", batch=32)`, `names()`."""

from .model import Model
from .zoo import get, names

__all__ = ["Model", "get", "names"]

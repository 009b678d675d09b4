"""Reading a user's own data: `read(path)` finds the format and gives the samples."""

from .dataset import Dataset, Reading
from .formats import read

__all__ = ["Dataset", "Reading", "read"]

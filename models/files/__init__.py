"""Reading a user's own data: `read(path)` finds the format and gives the samples."""

from .dataset import Dataset, ReadOptions
from .formats import read

__all__ = ["Dataset", "ReadOptions", "read"]

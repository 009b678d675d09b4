"""Devices, their memory, and the links between them."""

from .machine import Machine
from .machine_file import load_machine as load

__all__ = ["Machine", "load"]

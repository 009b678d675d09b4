"""The time line of a program on a machine."""

from .check_timeline import check_timeline
from .simulate import simulate
from .timeline import Timeline

__all__ = ["Timeline", "check_timeline", "simulate"]

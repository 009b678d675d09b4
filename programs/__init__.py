"""Lowered plans: instruction lists, their clock, their memory and waits, and their verification."""

from .memory import MemoryPlan, buffer_lifetimes, plan_memory
from .program import PartitionedGraph
from .schedule import Schedule, schedule

__all__ = ["MemoryPlan", "PartitionedGraph", "Schedule", "buffer_lifetimes", "plan_memory", "schedule"]

"""Lowered plans: instruction lists, their clock, their memory and waits, and their verification."""

from .gathering import gather
from .memory import MemoryPlan, buffer_lifetimes, plan_memory
from .messages import Message, Messages, count_messages, messages
from .program import PartitionedGraph
from .schedule import Schedule, schedule

__all__ = [
    "MemoryPlan",
    "Message",
    "Messages",
    "PartitionedGraph",
    "Schedule",
    "buffer_lifetimes",
    "count_messages",
    "gather",
    "messages",
    "plan_memory",
    "schedule",
]

"""For those who choose how each variable is synchronised: AutoDist's strategies and builders.

`compile` makes the plan of a strategy, and `auto` searches one for a machine. docs/methods/autodist.md has
examples.
"""

from __future__ import annotations

from .partitioner.auto_sync import AutoSync, auto
from .partitioner.methods.autodist import builders
from .partitioner.methods.autodist.compiling import compile_strategy as compile
from .partitioner.methods.autodist.strategy import AllReduce, Partition, Server, Synchronisation, evenly
from .partitioner.methods.autodist.strategy import SyncStrategy as Strategy
from .partitioner.methods.autodist.strategy_file import parse_strategy as parse
from .partitioner.methods.autodist.strategy_file import read_strategy as read
from .partitioner.methods.autodist.strategy_file import strategy_document as document

__all__ = [
    "AllReduce",
    "AutoSync",
    "Partition",
    "Server",
    "Strategy",
    "Synchronisation",
    "auto",
    "builders",
    "compile",
    "document",
    "evenly",
    "parse",
    "read",
]

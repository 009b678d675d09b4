"""For those who choose how each variable is synchronised: AutoDist's strategies and builders.

`compile` makes the plan of a strategy, and `auto` searches one for a machine. If a strategy encodes or delays
gradients, its plan is for another graph: `rewrite` makes it, and `plan.graph` is it. docs/methods/autodist.md
has examples.
"""

from __future__ import annotations

from .dataflow.rewrites.encoders import Cast, PowerSgd, Rewrite, TopK
from .partitioner.auto_sync import AutoSync, auto
from .partitioner.methods.autodist import builders
from .partitioner.methods.autodist.autodist_text import parse_autodist_text as parse_autodist
from .partitioner.methods.autodist.rewriting import rewrite
from .partitioner.methods.autodist.strategy import AllReduce, Partition, Server, Synchronisation, evenly
from .partitioner.methods.autodist.strategy import SyncStrategy as Strategy
from .partitioner.methods.autodist.strategy_document import strategy_document as document
from .partitioner.methods.autodist.strategy_file import parse_strategy as parse
from .partitioner.methods.autodist.strategy_file import read_strategy as read
from .partitioner.methods.synchronise import synchronise as compile

__all__ = [
    "AllReduce",
    "AutoSync",
    "Cast",
    "Partition",
    "PowerSgd",
    "Rewrite",
    "Server",
    "Strategy",
    "Synchronisation",
    "TopK",
    "auto",
    "builders",
    "compile",
    "document",
    "evenly",
    "parse",
    "parse_autodist",
    "read",
    "rewrite",
]

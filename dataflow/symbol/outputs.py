"""The outputs that make up a symbol, and what can be read off them."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import GraphError
from ...support.checked_argument import require_kind
from ..node import Entry, Node, auxiliary_variables, check_unique_names, topological


class Outputs:
    """One or more outputs of a network, `heads`, and everything that they depend on."""

    __slots__ = ("_nodes", "heads")

    def __init__(self, heads: Sequence[Entry]) -> None:
        if not heads:
            raise GraphError("a symbol needs at least one output")
        self.heads = tuple(heads)
        self._nodes: tuple[Node, ...] | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """List all nodes, inputs before users. Raises GraphError if two share a name."""
        if self._nodes is None:
            nodes = topological(self.heads)
            check_unique_names(nodes)
            self._nodes = nodes
        return self._nodes

    @property
    def name(self) -> str | None:
        """Return the node's name; None for a group of several nodes."""
        nodes = {head.node for head in self.heads}
        return self.heads[0].node.name if len(nodes) == 1 else None

    def __len__(self) -> int:
        return len(self.heads)

    def list_arguments(self) -> list[str]:
        """Names of the variables, auxiliary states excluded, depth first from the outputs."""
        auxiliary = auxiliary_variables(self.nodes)
        return [node.name for node in self.nodes if node.is_variable and node not in auxiliary]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the states that an iteration overwrites, such as BatchNorm's moving mean."""
        auxiliary = auxiliary_variables(self.nodes)
        return [node.name for node in self.nodes if node in auxiliary]

    def list_outputs(self) -> list[str]:
        """Names such as `fc1_output`, `split0_output2`; a variable's is its own name."""
        return [head.node.output_name(head.output) for head in self.heads]


def require_symbol(value: object) -> None:
    """Raise GraphError if the value is not a symbol, for example a model or a module of PyTorch."""
    remedy = "a model of tofu.models has one in model.symbol, and tofu.from_torch and tofu.from_onnx make one"
    require_kind(value, Outputs, remedy, GraphError, name="Symbol")

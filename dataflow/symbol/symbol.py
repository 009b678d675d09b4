"""Symbols: networks as the user composes them, in the manner of MXNet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from ...analyzer.indices.region import Shape
from ...errors import GraphError, ShapeError, TofuError
from ...support.checked_argument import path_of
from ...support.saved_files import save_whole
from ...support.wording import alternatives
from ..node import Entry, Node, auxiliary_variables
from ..settings import mark
from .arithmetic import SymbolArithmetic
from .serialize import read_json, to_json
from .shapes import Table, complete, infer_symbol
from .substitute import substitute
from .types import DEFAULT, infer_types

Given = TypeVar("Given")
Found = TypeVar("Found")


class Symbol(SymbolArithmetic):
    """One or more outputs of a network: immutable, and shared freely between larger symbols.

    `symbol[0]` and `symbol["fc1_output"]` select outputs, iteration yields them one by one.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Self]:
        return (type(self)((head,)) for head in self.heads)

    def __getitem__(self, key: int | str) -> Self:
        names = self.list_outputs()
        if isinstance(key, str):
            found = [head for head, name in zip(self.heads, names, strict=True) if name == key]
            if len(found) != 1:
                problem = "several outputs" if found else "no output"
                raise GraphError(f"there are {problem} named {key!r}{alternatives(key, names)}")
            return type(self)(found)
        if not -len(names) <= key < len(names):
            raise IndexError(f"output {key} of a symbol with {len(names)} outputs: {', '.join(names)}")
        return type(self)((self.heads[key],))

    def __repr__(self) -> str:
        return f"<Symbol {', '.join(self.list_outputs()[:8])}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.tojson()))

    def __call__(self, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> Self:
        """This network with other symbols in the place of its arguments, in order or by name.

        `name` renames the output node. Raises GraphError for an argument that is not there.
        """
        composed = type(self)(substitute(self, args, kwargs, name))
        composed.list_arguments()
        return composed

    def get_internals(self) -> Self:
        """Return every output of every node; `get_internals()["fc1_output"]` is a part of the network."""
        return type(self)([entry for node in self.nodes for entry in node.entries])

    def get_children(self) -> Self | None:
        """Return the inputs of the output nodes, those of each node once; None for a variable."""
        nodes = dict.fromkeys(head.node for head in self.heads)
        inputs = [entry for node in nodes for entry in node.inputs]
        return type(self)(inputs) if inputs else None

    def attr(self, key: str) -> str | None:
        """Return an attribute of the node as text, as the user gave it; None if it was not given."""
        text = self._only_node().text
        return text.get(key, text.get(mark(key)))

    def list_attr(self) -> dict[str, str]:
        """Return all attributes of the node that the user gave, as text."""
        return dict(self._only_node().text)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return, for every node with attributes, its name and its attributes as text."""
        return {node.name: dict(node.text) for node in self.nodes if node.text}

    def infer_shape(
        self, *positional: Sequence[int | None] | None, **known: Sequence[int | None] | None
    ) -> tuple[list[Shape], list[Shape], list[Shape]]:
        """Shapes of the arguments, the outputs and the auxiliary states, from those of some arguments.

        0 and None stand for an unknown extent. Raises ShapeError if shapes disagree, or if some stay unknown;
        the message names them.
        """
        tables = infer_symbol(self, self._keywords("shapes", positional, known, ShapeError))
        complete(self, tables)
        return self._shapes(tables)

    def infer_shape_partial(
        self, *positional: Sequence[int | None] | None, **known: Sequence[int | None] | None
    ) -> tuple[list[Shape], list[Shape], list[Shape]]:
        """Return as `infer_shape`, with 0 for an unknown extent and () for a shape that is not known."""
        return self._shapes(infer_symbol(self, self._keywords("shapes", positional, known, ShapeError)))

    def infer_type(self, *positional: object, **known: object) -> tuple[list[type], list[type], list[type]]:
        """NumPy types of the arguments, the outputs and the auxiliary states, from those of some arguments.

        Undetermined types are float32. Raises GraphError for an unknown argument, and if types disagree.
        """
        found = infer_types(self, self._keywords("types", positional, known, GraphError))
        return self._listed(lambda entry: found.get(entry, DEFAULT).type)

    def tojson(self, *, dialect: str = "0.11") -> str:
        """Return the symbol as MXNet writes it: `dialect` is "0.11", which all versions read, or "1.x"."""
        return to_json(self, dialect)

    def save(self, path: str | Path, *, dialect: str = "0.11") -> None:
        """Write the symbol to a file that MXNet and `tofu.sym.load` read; see `tojson`. Raises GraphError."""
        text = self.tojson(dialect=dialect)
        save_whole(path_of(path, "path", GraphError), text.encode(), "the graph file", GraphError)

    def _only_node(self) -> Node:
        nodes = {head.node for head in self.heads}
        if len(nodes) != 1:
            raise GraphError("a group has no attributes; select one of its outputs first")
        return self.heads[0].node

    def _keywords(
        self, what: str, positional: Sequence[Given], known: Mapping[str, Given], error: type[TofuError]
    ) -> dict[str, Given]:
        """Return the values given for arguments, by name."""
        arguments = self.list_arguments()
        if len(positional) > len(arguments):
            raise error(f"{len(positional)} {what} were given, but there are {len(arguments)} arguments")
        return {**dict(zip(arguments, positional, strict=False)), **known}

    def _shapes(self, table: Table) -> tuple[list[Shape], list[Shape], list[Shape]]:
        return self._listed(
            lambda entry: tuple(extent or 0 for extent in table[entry.node][entry.output] or ())
        )

    def _listed(self, found: Callable[[Entry], Found]) -> tuple[list[Found], list[Found], list[Found]]:
        """List the values found for the arguments, the outputs and the auxiliary states."""
        auxiliary = auxiliary_variables(self.nodes)
        variables = [node for node in self.nodes if node.is_variable]
        return (
            [found(Entry(node, 0)) for node in variables if node not in auxiliary],
            [found(head) for head in self.heads],
            [found(Entry(node, 0)) for node in variables if node in auxiliary],
        )


def _restore(kind: type[Symbol], text: str) -> Symbol:
    """Return a pickled symbol."""
    return kind(read_json(text))

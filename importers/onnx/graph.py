"""The graph of an ONNX file, checked: names, the order of nodes, operators and their versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any

from ...errors import GraphError
from ...support.opened_files import read_regular
from ...support.terminal_text import printable
from ...support.wording import LISTED

OLDEST = 7
"""The oldest set of operators that is read in full: before it, broadcasting was an attribute."""

MOST_BYTES = (1 << 31) - 1
"""A message of protobuf is not larger."""

DEFAULT_DOMAINS = ("", "ai.onnx")


def read_model(model: Path | bytes) -> Any:
    """Return a model file as a message. Raises GraphError."""
    import onnx
    from google.protobuf.message import DecodeError

    data, place = model, "the model"
    if isinstance(model, Path):
        place = str(model)
        try:
            data = read_regular(model, MOST_BYTES)
        except OSError as error:
            raise GraphError(f"{model} cannot be read: {error.strerror}") from None
    try:
        found = onnx.ModelProto.FromString(data)
    except (DecodeError, RecursionError, ValueError) as error:
        raise GraphError(f"{place} is not an ONNX model: {error}") from None
    if not found.HasField("graph") or not found.graph.output:
        raise GraphError(f"{place} is not an ONNX model: it has no graph with outputs")
    if not all(isinstance(text, str) for text in _texts(found.graph)):
        raise GraphError(f"{place} is not an ONNX model: a name in it is not UTF-8")
    return found


def _texts(graph: Any) -> Iterator[object]:
    """Yield the names in a graph and in those inside its nodes. Those that are not UTF-8 are bytes."""
    graphs = [graph]
    while graphs:
        each = graphs.pop()
        for value in (*each.input, *each.output):
            yield value.name
            yield from (dimension.dim_param for dimension in value.type.tensor_type.shape.dim)
        for node in each.node:
            yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
            for attribute in node.attribute:
                yield from (attribute.name, *_entries(attribute.t))
            graphs.extend(bodies(node))
        for tensor in each.initializer:
            yield from _entries(tensor)


def bodies(node: Any) -> list[Any]:
    """Return the graphs inside a node, such as the branches of an If."""
    return [each.g for each in node.attribute if each.HasField("g")]


def every_node(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph, each before those of the graphs inside it."""
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            yield node
            graphs.extend(bodies(node))


def reads(node: Any) -> list[str]:
    """Return the names that a node reads: its inputs, and what its bodies take from outside."""
    found = dict.fromkeys(node.input)
    inside: list[tuple[Any, frozenset[str]]] = [(body, frozenset()) for body in bodies(node)]
    while inside:
        graph, around = inside.pop()
        given = {each.name for each in (*graph.input, *graph.initializer)}
        own = around.union(given, *(each.output for each in graph.node))
        read = [name for each in graph.node for name in each.input] + [each.name for each in graph.output]
        found.update(dict.fromkeys(name for name in read if name not in own))
        inside.extend((body, own) for each in graph.node for body in bodies(each))
    return list(found)


def _entries(tensor: Any) -> Iterator[object]:
    """Yield the name of a tensor and what says where its data are."""
    yield tensor.name
    for entry in tensor.external_data:
        yield from (entry.key, entry.value)


def opset(model: Any) -> int:
    """Return the version of ONNX's operators that a model uses. Raises GraphError."""
    import onnx

    newest = onnx.defs.onnx_opset_version()
    found = [each.version for each in model.opset_import if each.domain in DEFAULT_DOMAINS]
    if len(found) != 1 or not 1 <= found[0] <= newest:
        stated = ", ".join(map(str, found)) or "not stated"
        raise GraphError(
            f"the model's version of ONNX's operators (opset) is {stated}; versions up to {newest} are read: "
            "install a newer onnx, or convert the model by onnx.version_converter"
        )
    return int(found[0])


def escaped(name: str) -> str:
    """Return a name without characters that would break lines or move a terminal's text."""
    return printable(name).replace("\n", "\\n").replace("\t", "\\t")


def called(node: Any) -> str:
    """Return a node's name or, if it has none, that of its first output."""
    return escaped(node.name or next(iter(filter(None, node.output)), node.op_type))


def ordered(graph: Any, around: Collection[str] = ()) -> list[Any]:
    """Return the nodes that the outputs need, each after those whose outputs it reads.

    `around` are the names that the graph sees because it is inside a node.

    Raises GraphError for a name that two nodes make or nothing makes, and for a cycle.
    """
    given = [each.name for each in graph.input]
    kept = [each.name for each in graph.initializer]
    for names, what in ((given, "inputs"), (kept, "initializers")):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise GraphError(f"two {what} are named {escaped(twice)!r}; names are unique")
    if not all(each.name for each in graph.output):
        raise GraphError("an output of the graph has no name; name it as the node that makes it does")
    if graph.sparse_initializer:
        raise GraphError("the model has sparse initializers; save it with dense ones")
    makers: dict[str, int] = {}
    taken = {*given, *kept}
    for index, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in taken or name in makers:
                raise GraphError(f"node {called(node)!r} makes {escaped(name)!r}, which exists already")
            makers[name] = index
    needed = _needed(graph, makers, taken, around)
    return _sorted(graph.node, makers, needed)


def _needed(graph: Any, makers: dict[str, int], taken: Collection[str], around: Collection[str]) -> list[int]:
    """Return the numbers of the nodes that the outputs depend on. Raises GraphError for unknown names."""
    found: set[int] = set()
    stack: list[tuple[str, str]] = [(each.name, "the list of outputs") for each in graph.output]
    while stack:
        name, reader = stack.pop()
        if name in taken or not name:
            continue
        maker = makers.get(name)
        if maker is None and name in around:
            continue
        if maker is None:
            raise GraphError(
                f"{reader} reads {escaped(name)!r}, which is neither an input nor made by a node"
            )
        if maker not in found:
            found.add(maker)
            node = graph.node[maker]
            stack.extend((each, f"node {called(node)!r}") for each in reads(node))
    return sorted(found)


def _sorted(nodes: Sequence[Any], makers: dict[str, int], needed: Sequence[int]) -> list[Any]:
    """Return nodes in the order of the file, each as soon as what it reads exists. Raises GraphError."""
    waits = {index: {makers[name] for name in reads(nodes[index]) if name in makers} for index in needed}
    readers: dict[int, list[int]] = {index: [] for index in needed}
    for index, sources in waits.items():
        for source in sources:
            readers[source].append(index)
    left = {index: len(sources) for index, sources in waits.items()}
    ready = [index for index in needed if not left[index]]
    heapify(ready)
    found = []
    while ready:
        index = heappop(ready)
        found.append(nodes[index])
        del left[index]
        for reader in readers[index]:
            left[reader] -= 1
            if not left[reader]:
                heappush(ready, reader)
    if left:
        names = ", ".join(repr(called(nodes[index])) for index in list(left)[:LISTED])
        raise GraphError(f"these nodes wait for each other, a cycle: {names}")
    return found


def check_versions(nodes: Sequence[Any], version: int) -> None:
    """Raise GraphError for a node of an old version that has another meaning in version 7."""
    import onnx

    if version >= OLDEST:
        return
    for node in nodes:
        try:
            same = onnx.defs.get_schema(node.op_type, OLDEST).since_version <= version
        except onnx.defs.SchemaError:
            same = False
        if not same:
            raise GraphError(
                f"node {called(node)!r}: {node.op_type} of version {version} of ONNX's operators is not "
                f"read, only from {OLDEST} on; convert the model by onnx.version_converter"
            )


def check_node(node: Any, version: int) -> None:
    """Raise GraphError for a node that is not as ONNX defines it in a version. Operators that it marks as
    replaced are not looked at: files from before that have them.
    """
    import onnx

    kind = node.op_type
    if onnx.defs.has(kind, version) and onnx.defs.get_schema(kind, version).deprecated:
        return
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {"": version}
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError as error:
        raise GraphError(f"not as ONNX defines it: {str(error).splitlines()[0]}") from None


def kind_of(node: Any) -> str:
    """Return the name of a node's operator, after its domain if that is not ONNX's."""
    return called_kind(node.domain, node.op_type)


def called_kind(domain: str, name: str) -> str:
    """Return the name of an operator, after its domain if that is not ONNX's."""
    return escaped(name if domain in DEFAULT_DOMAINS else f"{domain}.{name}")


def check_known(nodes: Sequence[Any], known: Collection[str]) -> None:
    """Raise GraphError naming all operators that are not known, each with a node."""
    first: dict[str, list[str]] = {}
    for node in nodes:
        if kind_of(node) not in known:
            first.setdefault(kind_of(node), []).append(called(node))
    if not first:
        return
    lines = [
        f"  {kind}: {', '.join(map(repr, names[:3]))}"
        + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        for kind, names in sorted(first.items())
    ]
    kind = min(first)
    raise GraphError(
        "these operators are not known, at these nodes:\n"
        + "\n".join(lines)
        + f"\ndescribe each in TDL: tofu.from_onnx(..., operators={{{kind!r}: tofu.parse('def f(x): return "
        "lambda *i: ...')})"
    )

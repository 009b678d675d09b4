"""From an exported program to a symbol: each call of an ATen operator becomes descriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...dataflow.naming import NameScope
from ...dataflow.symbol import Symbol
from ...dataflow.symbol.compose import apply, group, variable
from ...errors import GraphError, TofuError
from ...operators.operator import Operator
from ...support.checked_argument import require
from .call import AtenCall, AtenResult, TensorValue, UnsupportedCallError, elementwise
from .complexes import is_complex, of_complex
from .constants import Array, ModuleConstants, array_of, kind_of, view_as_real
from .converter import Converter
from .exporting import exported
from .extents import DecidedExtents
from .installed import installed
from .meta import with_stand_ins
from .nodes import (
    attribute_of,
    first_line,
    first_names,
    flattened,
    is_call,
    is_running_statistic,
    misuse_of_statistics,
    needed_for,
    path_of,
)
from .table import CONVERTERS

ONLY_SHAPES = (
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
)
"""Operators that read the shape of a tensor and nothing else."""

CALLS_OF_ONE_GRAPH = (
    "wrap_with_set_grad_enabled",
    "wrap_with_autocast",
    "tag_activation_checkpoint",
    "invoke_subgraph",
)
"""Calls of a graph that computes what it would without the call."""

SHOWN = 12
"""How many calls without a description an error lists."""


def from_torch(
    module: Any, example_inputs: Any, *, converters: Mapping[str, Operator] | None = None
) -> tuple[Symbol, dict[str, Array]]:
    """Read a module of PyTorch: its symbol, and its parameters and states by the module's names.

    `example_inputs` are a tuple for `forward`, or a mapping of keywords; shapes are fixed to theirs. The
    module's mode, `train()` or `eval()`, is that of dropout and batch normalisation. An output without
    dimensions that comes first is a loss. `converters` describe further operators in TDL, by name: the
    parameters of a description are the tensors that the operator takes, in order, and its attributes are
    arguments by name. Parameters on the meta device are NaN, in arrays that take no memory: such a module can
    be planned, and not trained. Raises GraphError that lists the operators without a description.
    """
    fits = converters is None or isinstance(converters, Mapping)
    require(fits, converters, "converters", "operators by name", GraphError)
    own = dict(converters or {})
    for name, operator in own.items():
        if not isinstance(operator, Operator):
            raise GraphError(f"converters[{name!r}] is a {type(operator).__name__}; make it with tofu.parse")
    table = {**CONVERTERS, **{name: _described_by(operator) for name, operator in own.items()}}
    module = with_stand_ins(module)
    program = exported(module, example_inputs, lambda name: _entry(table, name) is not None)
    with NameScope():
        return _Reader(module, program, table).read()


def _entry(table: Mapping[str, Converter], name: str) -> Converter | None:
    """Return the converter of `aten.add.Tensor`, under this name, without the overload, or as `add`."""
    plain = name.rpartition(".")[0]
    found = table.get(name) or table.get(plain)
    return found or (table.get(plain.removeprefix("aten.")) if plain.startswith("aten.") else None)


def _described_by(operator: Operator) -> Converter:
    """Return a converter that applies a user's description."""

    def convert(call: AtenCall) -> Sequence[TensorValue]:
        attributes = {spec.name: call.get(spec.name) for spec in operator.specs}
        torch = installed()
        given = [
            value if isinstance(value, TensorValue) else call.constant(value)
            for value in call.arguments.values()
            if isinstance(value, TensorValue | torch.Tensor)
        ]
        found = call.apply(operator, *given, **attributes)
        return [TensorValue(part, r.shape, r.kind) for part, r in zip(found, call.results, strict=True)]

    return convert


class _Reader:
    """Reads one program. Values are tensors of the symbol, or of PyTorch if they are constants."""

    def __init__(self, module: Any, program: Any, table: Mapping[str, Converter]) -> None:
        self.torch = installed()
        self.module, self.program, self.table = module, program, table
        self.signature = program.graph_signature
        self.names: Counter[str] = Counter()
        self.missing: list[str] = []
        self.first_names = first_names(module)
        self.stored: dict[str, Any] = {}
        self.variables: dict[str, Symbol] = {}
        self.buffers: dict[int, str] = {}
        self.kept: list[Any] = []
        self.constants = ModuleConstants(self.buffers, self.unique)
        self.changing = set(self.signature.buffers_to_mutate.values())
        self.calls_in: Counter[str] = Counter()
        self.needed: set[Any] = set()
        self.extents = DecidedExtents()

    def read(self) -> tuple[Symbol, dict[str, Array]]:
        graph_module = self.program.graph_module
        placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        self.require_described_changes(list(graph_module.graph.nodes), placeholders)
        given = [
            self.input(spec, node)
            for spec, node in zip(self.signature.input_specs, placeholders, strict=True)
        ]
        outputs = self.run(graph_module, given, self.wanted())
        if self.missing:
            raise self.refusal()
        symbol = self.result(outputs)
        known = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
        values = {name: array_of(value) for name, value in self.stored.items() if name in known}
        return symbol, values | {n: value for n, value in self.constants.values.items() if n in known}

    def require_described_changes(self, nodes: Sequence[Any], placeholders: Sequence[Any]) -> None:
        """Raise GraphError for a buffer that outputs depend on, and that training changes in another way than
        batch normalisation does.
        """
        needed, by_name = needed_for(nodes, self.wanted()), {node.name: node for node in nodes}
        changed = {target: by_name[name] for name, target in self.signature.buffers_to_mutate.items()}
        for spec, node in zip(self.signature.input_specs, placeholders, strict=True):
            if node in needed and spec.target in changed and not is_running_statistic(changed[spec.target]):
                raise GraphError(
                    f"buffer {spec.target!r} is changed in training by {changed[spec.target].name!r}, but "
                    "only the running statistics of batch normalisation are updated; read the module after "
                    "module.eval(), or make the buffer an input"
                )

    def unique(self, name: str) -> str:
        """Return the name, numbered if it is taken."""
        made = name
        while made in self.names:
            made = f"{name}_{self.names[name]}"
            self.names[name] += 1
        self.names[made] += 1
        return made

    def input(self, spec: Any, node: Any) -> Any:
        """Return the value of an input: a parameter, a buffer, a constant, or what the user feeds."""
        kind = spec.kind.name
        if kind == "USER_INPUT":
            value = node.meta.get("val")
            if not isinstance(value, self.torch.Tensor):
                return value
            if value.is_complex():
                raise GraphError(
                    f"input {node.name!r} is complex; give its parts, and use torch.view_as_complex"
                )
            shape = self.checked(value.shape, node)
            symbol = variable(self.unique(node.name), shape or (1,))
            return TensorValue(symbol, shape, kind_of(value))
        if kind == "PARAMETER" or spec.target in self.changing:
            return self.state(spec.target)
        if kind in ("BUFFER", "CONSTANT_TENSOR"):
            held = (
                self.program.state_dict if spec.target in self.program.state_dict else self.program.constants
            )
            value = held[spec.target].detach()
            self.buffers[id(value)] = self.first_names.get(spec.target, spec.target)
            self.kept.append(value)
            return value
        if kind == "TOKEN":
            calls = sorted({str(each.args[1]) for each in self.program.graph.nodes if "effects" in each.name})
            raise GraphError(
                f"the module calls {', '.join(calls)}: calls that check data, or have other effects besides "
                "their results, have no description; leave them out (torch.linalg.inv and functions like it "
                "make such calls)"
            )
        raise GraphError(f"input {node.name!r} of the module is a {kind.lower()}, which has no description")

    def state(self, target: str) -> TensorValue:
        """Return the variable of a parameter or a changing buffer; tensors that are tied have one."""
        name = self.first_names.get(target, target)
        value = self.program.state_dict[target]
        shape = tuple(value.shape)
        if name not in self.stored:
            self.stored[name] = value
            self.names[name] += 1
            fixed = target not in self.changing and not value.requires_grad
            rate = 0.0 if fixed else None
            held = tuple(view_as_real(value).shape) or (1,)
            self.variables[name] = variable(name, held, lr_mult=rate, wd_mult=1.0)
        return TensorValue(self.variables[name], shape, kind_of(value))

    def checked(self, shape: Sequence[Any], node: Any) -> tuple[int, ...]:
        """Return a shape. Raises GraphError if it depends on data."""
        shape = self.extents.shape(shape)
        if not all(isinstance(extent, int) for extent in shape):
            raise GraphError(f"the shape of {node.name!r} is {shape}, which depends on data")
        return shape

    def wanted(self) -> list[str]:
        """Return the names of the nodes that are outputs for users."""
        specs = self.signature.output_specs
        return [
            spec.arg.name
            for spec in specs
            if spec.kind.name in ("USER_OUTPUT", "LOSS_OUTPUT")
            and hasattr(spec.arg, "name")
            and type(spec.arg).__name__ == "TensorArgument"
        ]

    def run(self, graph_module: Any, given: Sequence[Any], wanted: Sequence[str] | None = None) -> list[Any]:
        """Return the values of the outputs that are wanted, all of them by default, for these inputs."""
        nodes = list(graph_module.graph.nodes)
        values: dict[Any, Any] = {}
        inputs = iter(given)
        needed = needed_for(nodes, wanted)
        if wanted is not None:
            self.needed = needed
            self.calls_in = Counter(path_of(node) for node in nodes if node in needed and is_call(node))
        by_name = {}
        for node in nodes:
            by_name[node.name] = node
            if node.op == "placeholder":
                values[node] = next(inputs)
            elif node.op == "get_attr":
                values[node] = attribute_of(graph_module, node.target)
            elif node.op == "call_function" and node in needed:
                values[node] = self.value(node, values)
            elif node.op == "output" and wanted is None:
                return [values[each] for each in node.args[0]]
        assert wanted is not None
        return [values[by_name[name]] for name in wanted]

    def value(self, node: Any, values: Mapping[Any, Any]) -> Any:
        """Return the value of a call: computed by PyTorch if it is a constant, or else described."""
        args, kwargs = self.torch.fx.node.map_arg((node.args, node.kwargs), lambda each: values[each])
        if getattr(node.target, "__name__", "") == "getitem":
            found = args[0][args[1]]
            why = f"output {args[1]} of {node.args[0].target}" if found is None else None
            if is_running_statistic(node):
                why = misuse_of_statistics(node, self.needed, self.wanted())
            return found if why is None else self.without_description(node, why)
        if any(isinstance(each, self.torch.fx.GraphModule) for each in args):
            return self.nested(node, args)
        inputs = [each for each in flattened((args, kwargs)) if isinstance(each, TensorValue)]
        random = self.torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if not inputs and not random:
            with self.torch.no_grad():
                found = node.target(*args, **kwargs)
            if isinstance(found, self.torch.Tensor):
                self.extents.compare(node.meta["val"], found)
            return found
        if getattr(node.target, "__name__", "") == "sym_size.int":
            return args[0].shape[args[1]]
        self.extents.decide(node, self.arguments(node, args, kwargs))
        made = node.meta.get("val")
        if isinstance(made, self.torch.Tensor) and self.extents.are_zero(made.shape):
            return self.torch.zeros(self.checked(made.shape, node), dtype=made.dtype)
        if getattr(getattr(node.target, "_schema", None), "name", "").removeprefix("aten::") in ONLY_SHAPES:
            like = node.args[0].meta["val"]
            with self.torch.no_grad():
                return node.target(self.torch.zeros(like.shape, dtype=like.dtype), *args[1:], **kwargs)
        return self.described(node, args, kwargs)

    def nested(self, node: Any, args: Sequence[Any]) -> Any:
        """Return the values of a call of graphs. Of two branches both are computed, and one is taken."""
        target = str(node.target)
        place = next(n for n, each in enumerate(args) if isinstance(each, self.torch.fx.GraphModule))
        if target in CALLS_OF_ONE_GRAPH:
            return self.run(args[place], args[place + 1 :])
        if target != "cond":
            raise GraphError(
                f"{target} at {path_of(node) or 'the module itself'} (node {node.name}) has no description; "
                "write out its steps"
            )
        condition, left, right, operands = args
        if not isinstance(condition, TensorValue):
            return self.run(left if condition else right, operands)
        branches = (self.run(graph, operands) for graph in (left, right))
        call = AtenCall(
            "cond", self.name(node, target), {}, tuple(self.results(node)), self.constants.tensor, self.unique
        )
        return [
            elementwise(
                call, "where({0} != 0, {1}, {2})", condition, *map(call.as_tensor, each),
                shape=result.shape, kind=result.kind,
            )
            for *each, result in zip(*branches, call.results, strict=True)
        ]  # fmt: skip

    def without_description(self, node: Any, why: str) -> TensorValue:
        """Note an output of a call that its description does not have, and return a stand-in for it."""
        maker = node.args[0]
        place = path_of(maker) or "the module itself"
        text = f"{why} at {place} (node {maker.name})"
        if text not in self.missing:
            self.missing.append(text)
        (result,) = self.results(node)
        symbol = variable(self.unique("missing"), result.shape or (1,))
        return TensorValue(symbol, result.shape, result.kind)

    def described(self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Apply the descriptions of a call."""
        target = str(node.target)
        results = tuple(self.results(node))
        converter = _entry(self.table, target)
        found: Any = None
        try:
            if any(map(is_complex, flattened((args, kwargs)))) or any(r.kind == "complex" for r in results):
                converter = of_complex(target, converter)
            if converter is None:
                raise UnsupportedCallError(target)
            found = converter(self.call(node, args, kwargs, results))
        except TofuError as error:
            shapes = ", ".join(
                str(list(each.shape)) for each in flattened((args, kwargs)) if isinstance(each, TensorValue)
            )
            place = path_of(node) or "the module itself"
            why = error if isinstance(error, UnsupportedCallError) else f"{target}: {first_line(error)}"
            self.missing.append(f"{why} at {place} (node {node.name}, of {shapes or 'constants'})")
            stand_ins = [variable(self.unique("missing"), result.shape or (1,)) for result in results]
            found = [TensorValue(s, r.shape, r.kind) for s, r in zip(stand_ins, results, strict=True)]
        several = isinstance(node.meta["val"], tuple | list)
        if isinstance(found, TensorValue):
            return [found] if several else found
        return list(found) if several else found[0]

    def call(
        self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any], results: tuple[AtenResult, ...]
    ) -> AtenCall:
        target = node.target._schema.name.replace("::", ".")
        arguments = self.arguments(node, args, kwargs)
        return AtenCall(
            target, self.name(node, target), arguments, results, self.constants.tensor, self.unique
        )

    def arguments(self, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by the names of the operator's schema."""
        names = (spec.name for spec in node.target._schema.arguments)
        return dict(zip(names, args, strict=False)) | dict(kwargs)

    def name(self, node: Any, target: str) -> str:
        """Return the module's name if it makes one call, or else with the operator's name."""
        path = path_of(node)
        own = target.rpartition(".")[2].strip("_")
        if path and self.calls_in[path] == 1:
            return path
        return f"{path}.{own}" if path else own

    def results(self, node: Any) -> Iterator[AtenResult]:
        value = node.meta["val"]
        for each in value if isinstance(value, tuple | list) else [value]:
            if not isinstance(each, self.torch.Tensor):
                raise GraphError(f"node {node.name!r} gives a {type(each).__name__}, which depends on data")
            yield AtenResult(self.checked(each.shape, node), kind_of(each))

    def result(self, outputs: Sequence[Any]) -> Symbol:
        """Return the outputs as one symbol. The first is a loss if it is one number."""
        tensors = [value for value in outputs if isinstance(value, TensorValue)]
        if not tensors:
            raise GraphError(f"no output of {type(self.module).__name__} depends on inputs or parameters")
        symbols = [each.symbol for each in tensors]
        if not tensors[0].shape and tensors[0].kind == "float":
            symbols[0] = apply("MakeLoss", symbols[0], name=self.unique("loss"))
        return symbols[0] if len(symbols) == 1 else group(symbols)

    def refusal(self) -> GraphError:
        """Return the error that lists all calls without a description and says how to add one."""
        listed = "\n  ".join(self.missing[:SHOWN])
        more = f"\n  and {len(self.missing) - SHOWN} more" if len(self.missing) > SHOWN else ""
        return GraphError(
            f"{len(self.missing)} calls in {type(self.module).__name__} have no description:\n"
            f"  {listed}{more}\n"
            "Describe each operator in TDL and name it in converters, for example\n"
            "  tofu.from_torch(module, example_inputs, converters={'mine.cube.default':\n"
            "      tofu.parse('def cube(x): return lambda *i: x[*i] ** 3')})"
        )

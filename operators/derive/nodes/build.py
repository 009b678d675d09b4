"""Build IR nodes for given ranges of the index variables, sharing equal subexpressions.

Comparisons that the ranges decide fold to constants. Padding that is never read is dropped. Factors that a
sum does not run over leave it. A factor that is zero everywhere makes its product zero, whatever the other
factors hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....analyzer.indices.region import Shape
from ....tdl.ast import Reducer
from . import affine
from .affine import AffineIndex, Ranges
from .functions import fold
from .ir import Apply, Constant, Iota, Load, Node, Reduction, Scalar, union


class NodeBuilder:
    """`ranges` has every index variable; `shapes` the whole tensors' extents."""

    def __init__(self, shapes: Mapping[str, Shape], ranges: Ranges) -> None:
        self.shapes = shapes
        self.ranges = ranges
        self._shared: dict[tuple[object, ...], Node] = {}
        self._forms: dict[Node, AffineIndex | None] = {}

    def constant(self, value: Scalar) -> Node:
        return self._share(("constant", type(value), repr(value)), lambda: Constant(value))

    def iota(self, name: str) -> Node:
        first, stop = self.ranges[name]
        if stop == first + 1:
            return self.constant(first)
        return self._share(("iota", name), lambda: Iota(name, frozenset((name,))))

    def index(self, form: AffineIndex) -> Node:
        """Return an affine form as a value."""
        total: Node = self.constant(0)
        for name, coefficient in form.coefficients:
            total = self.apply("+", (total, self.apply("*", (self.constant(coefficient), self.iota(name)))))
        return self.apply("+", (total, self.constant(form.constant)))

    def load(self, tensor: str, indices: tuple[Node | AffineIndex, ...], padding: Node | None) -> Node:
        forms = tuple(self._index(index) for index in indices)
        if padding is not None:
            inside = True
            for form, extent in zip(forms, self.shapes[tensor], strict=True):
                if not isinstance(form, AffineIndex):
                    inside = False
                    continue
                lower, stop = form.interval(self.ranges)
                if lower < stop and (stop <= 0 or lower >= extent):
                    return padding
                inside &= lower >= 0 and stop <= extent
            padding = None if inside else padding
        nodes = tuple(form for form in forms if not isinstance(form, AffineIndex))
        names = union(nodes if padding is None else (*nodes, padding))
        names = names.union(*(dict(form.coefficients) for form in forms if isinstance(form, AffineIndex)))
        return self._share(("load", tensor, forms, padding), lambda: Load(tensor, forms, padding, names))

    def apply(self, function: str, arguments: tuple[Node, ...]) -> Node:
        if (decided := self._decided(function, arguments)) is not None:
            return decided
        loads = any(argument.loads for argument in arguments)
        node = self._share(
            ("apply", function, arguments), lambda: Apply(function, arguments, union(arguments), loads)
        )
        form = None if loads else self.form(node)
        return node if form is None or form.coefficients else self.constant(form.constant)

    def reduction(self, reducer: Reducer, variables: tuple[str, ...], body: Node) -> Node:
        bound = body.free & set(variables)
        if reducer is Reducer.SUM:
            match body:
                case Constant(value=value) if value == 0:
                    return body
                case Apply(function="negative", arguments=(operand,)):
                    return self.apply("negative", (self.reduction(reducer, variables, operand),))
                case Apply(function="/", arguments=(x, y)) if bound and not y.free & bound:
                    return self.apply("/", (self.reduction(reducer, variables, x), y))
                case Apply(function="*") if bound:
                    outside, inside = self._factors(body, bound)
                    if outside is not None:
                        total = self.reduction(reducer, variables, inside)
                        return self.apply("*", (outside, total))
        return self._share(
            ("reduce", reducer, variables, body),
            lambda: Reduction(reducer, variables, body, body.free - set(variables), body.loads),
        )

    def form(self, node: Node) -> AffineIndex | None:
        """Return the affine form of an integer expression of index variables, or None if it has none."""
        if node not in self._forms:
            self._forms[node] = self._form(node)
        return self._forms[node]

    def _form(self, node: Node) -> AffineIndex | None:
        match node:
            case Constant(value=bool()):
                return None
            case Constant(value=int(value)):
                return AffineIndex((), value)
            case Iota(variable=name):
                return affine.variable(name)
            case Apply(function="negative", arguments=(x,)):
                inner = self.form(x)
                return None if inner is None else affine.added(affine.ZERO, inner, -1)
            case Apply(function="abs", arguments=(x,)):
                inner = self.form(x)
                return None if inner is None else affine.absolute(inner, self.ranges)
            case Apply(function=function, arguments=(x, y)):
                a, b = self.form(x), self.form(y)
                return None if a is None or b is None else affine.applied(function, a, b, self.ranges)
            case _:
                return None

    def _index(self, index: Node | AffineIndex) -> Node | AffineIndex:
        form = index if isinstance(index, AffineIndex) else self.form(index)
        return index if form is None else form

    def _decided(self, function: str, arguments: tuple[Node, ...]) -> Node | None:
        """Return what a function gives if its arguments decide it without computing."""
        values = [argument.value for argument in arguments if isinstance(argument, Constant)]
        if len(values) == len(arguments):
            return self.constant(fold(function, values))
        match function, arguments:
            case "where", (Constant(value=condition), x, y):
                return x if condition else y
            case "where", (_, x, y) if x is y:
                return x
            case (("and" | "or"), (x, Constant(value=value)) | (Constant(value=value), x)):
                if bool(value) == (function == "or"):
                    return self.constant(bool(value))
                return x if _truth(x) else None
            case "*", (_, Constant(value=0) as zero) | (Constant(value=0) as zero, _):
                return zero
            case "*", (x, Constant(value=1)) | (Constant(value=1), x):
                return x
            case "+", (x, Constant(value=0)) | (Constant(value=0), x):
                return x
            case "-", (x, Constant(value=0)):
                return x
        if function in affine.COMPARISONS and len(arguments) == 2:
            a, b = self.form(arguments[0]), self.form(arguments[1])
            holds = None if a is None or b is None else affine.compared(function, a, b, self.ranges)
            return None if holds is None else self.constant(holds)
        return None

    def _factors(self, node: Node, bound: frozenset[str]) -> tuple[Node | None, Node]:
        """Return a product as the factors that do not depend on `bound` and the others."""
        if not node.free & bound:
            return node, self.constant(1)
        if not (isinstance(node, Apply) and node.function == "*"):
            return None, node
        left, right = (self._factors(argument, bound) for argument in node.arguments)
        outside = [factor for factor in (left[0], right[0]) if factor is not None]
        inside = self.apply("*", (left[1], right[1]))
        if len(outside) == 2:
            return self.apply("*", (outside[0], outside[1])), inside
        return (outside[0] if outside else None), inside

    def _share(self, key: tuple[object, ...], make: Callable[[], Node]) -> Node:
        if (node := self._shared.get(key)) is None:
            node = self._shared[key] = make()
        return node


def _truth(node: Node) -> bool:
    """Return whether a node's values are truth values."""
    return isinstance(node, Apply) and (
        node.function in affine.COMPARISONS or node.function in ("and", "or", "not")
    )

"""Sums over a choice by equality, in time linear in what is chosen from and what comes out.

    Sum(b: where(row[b] == v, f[b], 0))      a scatter: every term goes to the one v that its index names
    Sum(v: where(row[b] == v, f[v], 0))      a gather: every b takes the one term that its index names

The other side of the equality is data or an index; several equalities name several variables. Prod, Max and
Min likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....tdl.ast import Reducer
from ..nodes import affine
from ..nodes.affine import AffineIndex
from ..nodes.blocks import small, volume
from ..nodes.ir import Apply, Load, Names, Node, Reduction
from .guarded import chosen, depending, form, free, guarded, product, reduction, without

GAIN = 4
"""A scatter or gather pays if it visits this many times fewer elements than the equalities have values."""


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """An equality that names a variable: it holds for `variable == sign * (value - offset)`."""

    variable: str
    """The variable that is named."""

    value: Node | None
    """The node that names it; None if an index does, which is `-sign * offset`."""

    offset: AffineIndex
    """The affine part of the equality besides the variable."""

    sign: int
    """The coefficient of the variable in the equality: 1 or -1."""

    condition: Node
    """The node of the equality."""

    @property
    def free(self) -> Names:
        """The variables that the key depends on."""
        names = frozenset(name for name, _ in self.offset.coefficients)
        return names if self.value is None else names | self.value.free


@dataclass(frozen=True, slots=True, eq=False)
class OneHot:
    """`after * reduction(source)` over the terms whose keys fit, if all of `holds` are true."""

    node: Reduction
    """The reduction as it was written."""

    keys: tuple[Key, ...]
    """The equalities. Each names another variable."""

    gathers: bool
    """Whether the keys name the variables of the reduction; if not, they name variables of the result."""

    source: Node
    """The term, without the equalities."""

    after: tuple[Node, ...]
    """The factors that multiply the result."""

    holds: tuple[Node, ...]
    """The conditions without which the result is the reducer's identity."""

    @property
    def named(self) -> Names:
        """The variables that the keys name."""
        return frozenset(key.variable for key in self.keys)

    @property
    def positions(self) -> Names:
        """The variables that the keys depend on."""
        return frozenset().union(*(key.free for key in self.keys))

    def pays(self, extents: Mapping[str, int]) -> bool:
        """Return whether far fewer elements are visited than the sum has terms."""
        ranges = {name: (0, extent) for name, extent in extents.items()}
        visited = volume(self.node.free, ranges)
        if not self.gathers or not isinstance(self.source, Load):
            visited += volume(self.source.free | (frozenset() if self.gathers else self.positions), ranges)
        return volume(self.node.body.free, ranges) >= GAIN * max(visited, 1)


def onehot(node: Reduction) -> OneHot | None:
    """Return the gather or scatter that computes a reduction; None if it has another form."""
    parts = guarded(node.reducer, node.body)
    found = gather_keys(parts.conditions, node)
    gathers = len(found) == len(node.variables)
    keys = found if gathers else _scatter_keys(parts.conditions, node)
    if not keys:
        return None
    named = frozenset(key.variable for key in keys)
    inside = named if gathers else frozenset(node.variables)
    equalities = [key.condition for key in keys]
    others = without(parts.conditions, equalities)
    source, held = depending(parts.factors, inside), depending(others, inside)
    if node.reducer is not Reducer.SUM:
        source = parts.factors
    after, holds = without(parts.factors, source), without(others, held)
    if not gathers:
        if depending((*source, *held), named):
            return None
        # variables that neither the keys nor the terms contain are summed over
        after = depending(after, named)
        source = without(parts.factors, after)
        if not frozenset().union(*(key.free for key in keys)).issuperset(node.variables):
            return None
    return OneHot(node, keys, gathers, chosen(node.reducer, held, product(source)), after, holds)


def isolate(node: Reduction, extents: Mapping[str, int]) -> Node | None:
    """Return the reduction with a separate gather or scatter for what is chosen by equality.

    None without one.

    Reductions over variables that only its terms have come first, all others last.
    """
    parts = guarded(node.reducer, node.body)
    keys = gather_keys(parts.conditions, node) or _scatter_keys(parts.conditions, node)
    if not keys or not node.body.free.issuperset(node.variables):
        return None
    named = frozenset(key.variable for key in keys)
    gathers = named <= frozenset(node.variables)
    equalities = [key.condition for key in keys]
    others = without(parts.conditions, equalities)
    positions = frozenset().union(*(key.free for key in keys))
    inside = named if gathers else positions & frozenset(node.variables)
    rest = [name for name in node.variables if name not in inside]
    source = depending(parts.factors, inside | (frozenset() if gathers else frozenset(rest)))
    if node.reducer is not Reducer.SUM:
        source = parts.factors
    after = without(parts.factors, source)
    held = depending(others, inside)
    outside = free((*after, *others)) | positions
    own = [name for name in rest if name not in outside]
    outer = [name for name in rest if name not in own]
    summed = reduction(node.reducer, own, product(source))
    reach = summed.free | positions
    near = [factor for factor in after if factor.free <= reach or not outer]
    inner = reduction(
        node.reducer,
        [name for name in node.variables if name in inside],
        chosen(node.reducer, (*equalities, *held), product([*near, summed])),
    )
    assert isinstance(inner, Reduction)
    found = onehot(inner)
    if found is None or not found.pays(extents) or (outer and not (gathers and small(inner, extents))):
        return None
    value = product([*without(after, near), inner])
    return reduction(node.reducer, outer, chosen(node.reducer, without(others, held), value))


def gather_keys(conditions: tuple[Node, ...], node: Reduction) -> tuple[Key, ...]:
    """Return equalities that name variables of the reduction by others."""
    keys: list[Key] = []
    for condition in conditions:
        for key in _keys(condition):
            taken = {other.variable for other in keys}
            if key.variable in node.variables and key.variable not in taken and not key.free & taken:
                if any(key.variable in other.free for other in keys):
                    continue
                keys.append(key)
                break
    return tuple(keys)


def _scatter_keys(conditions: tuple[Node, ...], node: Reduction) -> tuple[Key, ...]:
    """Return equalities that name variables of the result by variables of the reduction."""
    keys: list[Key] = []
    reduced = frozenset(node.variables)
    for condition in conditions:
        for key in _keys(condition):
            if key.variable not in node.free or not key.free & reduced:
                continue
            if any(key.variable == other.variable or key.variable in other.free for other in keys):
                continue
            if key.free & {other.variable for other in keys}:
                continue
            keys.append(key)
            break
    return tuple(keys)


def _keys(condition: Node) -> list[Key]:
    """Return the variables that an equality names."""
    if not (isinstance(condition, Apply) and condition.function == "=="):
        return []
    left, right = condition.arguments
    a, b = form(left), form(right)
    value: Node | None = None
    if a is not None and b is not None:
        shape = affine.added(a, b, -1)
    elif a is not None:
        shape, value = a, right
    elif b is not None:
        shape, value = b, left
    else:
        return []
    found = []
    for name, sign in shape.coefficients:
        if abs(sign) == 1 and (value is None or name not in value.free):
            offset = affine.added(shape, affine.variable(name), -sign)
            found.append(Key(name, value, offset, sign, condition))
    return found

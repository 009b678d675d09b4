"""Walking and rewriting trees."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.tdl import ast, traverse

TEXT = """\
def f(m, a, *, n=2, mode="one"):
    C = Opaque()
    s = lambda i: (mode == "two") - a[i] + -pad(a[i - n], 0) * m.shape[0]
    return (
        lambda b, i=n, *j: C(m[b, :])[i] + exp(s[i]) + Sum(lambda k=3: a[*j] * k),
        lambda i: s[i],
    )
"""


def test_every_node_type_appears_in_the_order_of_the_text() -> None:
    description = tdl.parse(TEXT)
    nodes = list(tdl.walk(description))
    kinds = {type(node) for node in nodes}
    assert kinds == set(tdl.Node.__args__)
    starts = [node.span.start for node in nodes if isinstance(node, ast.Variable | ast.Number | ast.Star)]
    assert starts == sorted(starts)


def test_rebuilding_with_the_same_children_gives_the_same_node() -> None:
    for node in tdl.walk(tdl.parse(TEXT)):
        assert tdl.rebuild(node, tdl.children(node)) is node


def test_rebuilding_with_equal_copies_gives_an_equal_node() -> None:
    for node, copy in zip(tdl.walk(tdl.parse(TEXT)), tdl.walk(tdl.parse(TEXT)), strict=True):
        assert tdl.rebuild(node, tdl.children(copy)) == node


def test_rebuilding_a_leaf_refuses_children() -> None:
    with pytest.raises(ValueError, match="Number has no children"):
        tdl.rebuild(ast.Number(1), (ast.Number(2),))


def test_transform_renames_below_every_kind_of_node() -> None:
    def rename(node: tdl.Node) -> tdl.Node:
        match node:
            case ast.Variable(name="i"):
                return ast.Variable("row", node.span)
            case ast.Binder(name="i", extent=extent, star=star):
                return ast.Binder("row", extent, star, node.span)
            case _:
                return node

    renamed = tdl.transform(tdl.parse(TEXT), rename)
    expected = TEXT.replace("lambda i", "lambda row").replace("[i", "[row").replace("i=n", "row=n")
    assert renamed == tdl.parse(expected)


def test_transform_without_change_is_the_node_itself() -> None:
    description = tdl.parse(TEXT)
    assert tdl.transform(description, lambda node: node) is description


def test_what_a_tree_mentions() -> None:
    description = tdl.parse(TEXT)
    stage, (first, _) = description.stages[0], description.outputs
    assert traverse.tensors_in(stage) == {"a", "m"}
    assert traverse.opaques_in(first) == ("C",)
    assert traverse.variable_names(first) == {"b", "i", "k"}
    assert traverse.reads_elements(first.body)
    assert not traverse.reads_elements(ast.Variable("i"))


def test_expressions_take_the_places_of_variables() -> None:
    value = tdl.parse_expression("i + 2 * j")
    assert traverse.substitute(value, {"j": tdl.parse_expression("i - 1")}) == tdl.parse_expression(
        "i + 2 * (i - 1)"
    )
    assert traverse.substitute(value, {"k": ast.Number(1)}) is value


def test_deep_trees_need_no_recursion() -> None:
    node: ast.Expression = ast.Variable("x")
    for _ in range(50_000):
        node = ast.Unary("-", node)
    assert max(level for _, level in tdl.levels(node)) == 50_001
    flipped = tdl.transform(
        node, lambda inner: ast.Variable("y") if isinstance(inner, ast.Variable) else inner
    )
    assert list(tdl.walk(flipped))[-1] == ast.Variable("y")

"""The meaning of texts: forms of the paper, Python's layout, and what is sugar for what."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tofu import tdl
from tofu.errors import DescriptionError
from tofu.tdl import ast

CONV1D = """
@tofu.op
def conv1d(data, filters):
    return lambda b, co, x:
    Sum(lambda ci, dx: data[b, ci, x+dx]*filters[ci, co, dx])
"""
CHOLESKY = """
@tofu.op
def batch_cholesky(batch_mat):
    Cholesky = tofu.Opaque()
    return lambda b, i, j: Cholesky(batch_mat[b, :, :])[i,j]
"""


def body(expression: str) -> ast.Expression:
    """The tree of an expression over tensor `a`, variables `i` and `j`, attributes `n` and `k` (a tuple)."""
    text = f"def f(a, *, n=1, k=(1, 2)): return lambda i, j: a[i, j] + ({expression})"
    value = tdl.parse(text).outputs[0].body
    assert isinstance(value, ast.Binary)
    return value.right


def test_conv1d_of_the_paper() -> None:
    description = tdl.parse(CONV1D)
    b, co, x, ci, dx = map(ast.Variable, ("b", "co", "x", "ci", "dx"))
    product = ast.Binary(
        "*",
        ast.Element("data", (b, ci, ast.Binary("+", x, dx))),
        ast.Element("filters", (ci, co, dx)),
    )
    reduce = ast.ReducerCall(ast.Reducer.SUM, (ast.Binder("ci"), ast.Binder("dx")), product)
    assert description == ast.Description(
        name="conv1d",
        tensors=(ast.TensorParameter("data"), ast.TensorParameter("filters")),
        attributes=(),
        opaques=(),
        stages=(),
        outputs=(ast.Lambda((ast.Binder("b"), ast.Binder("co"), ast.Binder("x")), reduce),),
    )
    assert description.source == CONV1D


def test_batch_cholesky_of_the_paper() -> None:
    description = tdl.parse(CHOLESKY)
    assert description.opaques == ("Cholesky",)
    element = description.outputs[0].body
    assert isinstance(element, ast.OpaqueElement)
    slices = ast.Element("batch_mat", (ast.Variable("b"), ast.FullSlice(), ast.FullSlice()))
    assert element.arguments == (slices,)
    assert element.indices == (ast.Variable("i"), ast.Variable("j"))


def test_shift_two_of_the_paper() -> None:
    description = tdl.parse("def shift_two(A): B = lambda i : A[i+2]; return B")
    assert description == tdl.parse("def shift_two(A):\n    return lambda i: A[i + 2]\n")


@pytest.mark.parametrize(
    "text",
    [
        "def f(a):\n    return lambda i: a[i]",
        "\n\n  # before\ndef f(a):  # after\n\n    # between\n    return lambda i: a[i]  # end\n\n",
        "def f(a):\r\n\treturn lambda i: a[i]\r\n",
        "def f(a): return lambda i: a[i];",
        "def f(a,): return (lambda i: a[i,])",
        "def f(\n    a,\n):\n    return lambda i: a[\n        i\n    ]",
        "def f(a):\nreturn lambda i:\na[i]",
        "def f(a): \\\n  return lambda i: \\\n  a[i]",
        'def f(a):\n    """A docstring, with (brackets[ and \'quotes\'."""\n    return lambda i: a[i]',
        "@tofu.op\n@other.thing()\ndef f(a):\n    return lambda i: a[i]",
        "def f(a):\n    b = lambda i: a[i]\n    return b",
        "def f(a): return lambda i: ((a[((i))]))",
    ],
)
def test_layout_means_nothing(text: str) -> None:
    assert tdl.parse(text) == tdl.parse("def f(a): return lambda i: a[i]")


@pytest.mark.parametrize(
    "name", ["N", "I", "S", "E", "floor", "Sum", "class", "for", "None", "lambda_", "tofu", "sqrt"]
)
def test_variables_may_have_any_name(name: str) -> None:
    description = tdl.parse(f"def f(a): return lambda {name}: a[{name}] + sqrt({name})")
    assert description.outputs[0].variables == (ast.Binder(name),)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("i - j - 1", "(i - j) - 1"),
        ("i - j + 1", "(i - j) + 1"),
        ("i + j * 2", "i + (j * 2)"),
        ("i // j % 2", "(i // j) % 2"),
        ("-i ** 2", "-(i ** 2)"),
        ("2 ** -i ** j", "2 ** (-(i ** j))"),
        ("-i * j", "(-i) * j"),
        ("not i < j and i or j", "((not (i < j)) and i) or j"),
        ("i < j + 1", "i < (j + 1)"),
        ("i if j else 1 if i else 2", "where(j, i, where(i, 1, 2))"),
        ("+i", "i"),
        ("tofu.exp(i)", "exp(i)"),
        ("tofu.Sum(lambda m=3: m)", "Sum(lambda m=3: m)"),
    ],
)
def test_meaning(text: str, meaning: str) -> None:
    assert body(text) == body(meaning)


@pytest.mark.parametrize(
    ("text", "different"),
    [
        ("i - 1", "i + 1"),
        ("-(1)", "-1"),
        ("i - (j - 1)", "i - j - 1"),
        ("1", "1.5"),
        ("i ** j ** 2", "(i ** j) ** 2"),
    ],
)
def test_different_meaning(text: str, different: str) -> None:
    assert body(text) != body(different)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("0", 0),
        ("1_000", 1000),
        (".5", 0.5),
        ("2.", 2.0),
        ("1e-3", 1e-3),
        ("1.5E2", 150.0),
        ("-3", -3),
    ],
)
def test_numbers(text: str, value: float) -> None:
    number = body(text)
    assert number == ast.Number(value)
    assert isinstance(number, ast.Number)
    assert type(number.value) is type(value)


@pytest.mark.parametrize(("text", "value"), [("inf", float("inf")), ("pi", 3.141592653589793), ("True", 1)])
def test_constants(text: str, value: float) -> None:
    assert body(text) == ast.Number(value)


def test_attributes() -> None:
    text = """
        def f(a, *, n, flag=True, scale=-1.5, k=(3,), e=(), g=(1)):
            return lambda i: a[i + n] * scale + k[0] * g
    """
    description = tdl.parse(text)
    assert [(p.name, p.default) for p in description.attributes] == [
        ("n", None),
        ("flag", True),
        ("scale", -1.5),
        ("k", (3,)),
        ("e", ()),
        ("g", 1),
    ]
    assert description.attributes[1].default is True
    assert body("k[1] * n") == ast.Binary("*", ast.Attribute("k", 1), ast.Attribute("n"))


def test_shape() -> None:
    assert body("a.shape[-1]") == ast.Extent("a", -1)
    binder = tdl.parse("def f(a, b): return lambda y=b.shape[2] // 2: a[0]").outputs[0].variables[0]
    assert binder.extent == ast.Binary("//", ast.Extent("b", 2), ast.Number(2))


def test_starred_variables() -> None:
    lambda_ = tdl.parse("def f(a): return lambda n, *i: a[n, *i] - Sum(lambda *k: a[*k])").outputs[0]
    assert lambda_.variables == (ast.Binder("n"), ast.Binder("i", star=True))
    assert isinstance(lambda_.body, ast.Binary)
    assert lambda_.body.left == ast.Element("a", (ast.Variable("n"), ast.Star("i")))


def test_rank_zero() -> None:
    description = tdl.parse("def f(a): return lambda: a[()] + 1")
    assert description.outputs[0].variables == ()
    assert isinstance(description.outputs[0].body, ast.Binary)
    assert description.outputs[0].body.left == ast.Element("a", ())


def test_stages_and_several_outputs() -> None:
    description = tdl.parse(
        "def norm(a):\n"
        "    total = lambda i: Sum(lambda j: a[i, j])\n"
        "    mean = lambda i: total[i] / a.shape[1]\n"
        "    return lambda i, j: a[i, j] - mean[i], mean"
    )
    assert [stage.name for stage in description.stages] == ["total", "mean"]
    assert description.outputs[1] == ast.Lambda((ast.Binder("i"),), ast.Element("mean", (ast.Variable("i"),)))


def test_a_stage_that_only_the_result_reads_is_an_output() -> None:
    description = tdl.parse(
        "def f(a):\n    b = lambda i: a[i]\n    c = lambda *i: a[*i] + b[*i]\n    return (c, lambda i: a[i])"
    )
    assert [stage.name for stage in description.stages] == ["b"]
    assert description.outputs[0].variables == (ast.Binder("i", star=True),)


def test_the_same_stage_returned_twice_stays_a_stage() -> None:
    description = tdl.parse("def f(a):\n    b = lambda i: a[i]\n    return b, b")
    assert [stage.name for stage in description.stages] == ["b"]
    assert description.outputs[0] == description.outputs[1]


def test_index_that_depends_on_data() -> None:
    text = "def take(weight, data): return lambda b, j: weight[minimum(floor(data[b]), 9) * b, j]"
    assert tdl.parse(text).tensor_names == ("weight", "data")


def test_affine_indices_with_attributes_and_extents() -> None:
    tdl.parse(
        "def f(a, *, stride, k): return lambda x, y=9:"
        " a[x * stride + y * k[0] - (x + stride) // 2 % a.shape[0] * (k[1] ** 2) - -x]"
    )


def test_opaque_result_of_another_rank_needs_stated_extents() -> None:
    tdl.parse("def f(m):\n    Sizes = Opaque()\n    return lambda b, i=2: Sizes(m[b, :, :])[i]")


def test_spans_cover_their_text() -> None:
    text = "def f(a):\n    return lambda i, j: (a[i, j] + exp(i)) * -j"
    description = tdl.parse(text)
    shown = {
        type(node).__name__: text[node.span.start : node.span.end]
        for node in tdl.walk(description.outputs[0])
        if not isinstance(node, ast.Description)
    }
    assert shown["Lambda"] == "lambda i, j: (a[i, j] + exp(i)) * -j"
    assert shown["Element"] == "a[i, j]"
    assert shown["Call"] == "exp(i)"
    assert shown["Unary"] == "-j"


def test_importing_builds_no_grammar() -> None:
    code = "import sys, tofu.tdl; print('lark' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_expression_alone() -> None:
    x = ast.Variable("x")
    assert tdl.parse_expression("1 - x * x") == ast.Binary("-", ast.Number(1), ast.Binary("*", x, x))


def test_only_text_from_outside_is_bounded_in_length() -> None:
    stages = "".join(f"    s{k + 1} = lambda i: s{k}[i] + 1\n" for k in range(1500))
    text = f"def f(s0):\n{stages}    return lambda i: s1500[i]"
    with pytest.raises(DescriptionError, match="too long"):
        tdl.parse(text)
    assert len(tdl.parse(text, bounded=False).stages) == 1500

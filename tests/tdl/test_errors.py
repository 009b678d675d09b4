"""Every complaint about a description, word for word (`golden/`), and its place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import DescriptionError

from ..hangs import no_hang

HEAD = "def f(a):\n    return "

TEXT = {
    "empty text": "",
    "blank text": "  \n\n",
    "comment only": "# nothing\n",
    "never closed": "def f(a):\n    return lambda i: a[(i + 1]\n",
    "open at the end": HEAD + "lambda i: a[i",
    "closes nothing": HEAD + "lambda i: a[i])",
    "no comma between variables": HEAD + "lambda x x: a[x]",
    "lambda without a space": HEAD + "lambdax: a[x]",
    "trailing comma after variables": HEAD + "lambda i,: a[i]",
    "trailing comma after a result": HEAD + "lambda i: a[i],",
    "comma alone": HEAD + "lambda i: a[,]",
    "no return": "def f(a):\n    b = lambda i: a[i]\n",
    "nothing returned": "def f(a):\n    return\n",
    "expression returned": HEAD + "a",
    "reducer returned": HEAD + "Sum(lambda i: a[i])",
    "statement after return": HEAD + "lambda i: a[i]\nb = lambda i: a[i]",
    "not a function": "import os",
    "null character": HEAD + "lambda i: a[i]\0",
    "byte order mark": "\ufeff" + HEAD + "lambda i: a[i]",
    "homoglyph": HEAD + "lambda i: \u0430[i]",
    "full-width digit": HEAD + "lambda i: a[i + \uff11]",
    "bidirectional mark in a comment": HEAD + "lambda i: a[i]  # \u202e]i[a",
    "lone surrogate": HEAD + "lambda i: a[i]\ud800",
    "wide characters before the place": 'def f(a): "\u5e45\u5e83"; return lambda i: a[i] $',
    "braces": HEAD + "lambda i: a[i] + {1}",
    "tabs before the place": "def f(a):\n\treturn\tlambda i:\ta[i] $",
    "string never closed": HEAD + "lambda i: a[i] + 'x",
    "string as a value": HEAD + "lambda i: a[i] + 'x'",
    "long line": HEAD + "lambda i: a[i]" + " + a[i]" * 40 + " + $" + " + a[i]" * 40,
    "number too long": HEAD + "lambda i: a[i] + " + "9" * 5000,
    "integer beyond 64 bits": HEAD + "lambda i: a[i] + 9223372036854775808",
    "float beyond its range": HEAD + "lambda i: a[i] + 1e999",
    "leading zeros": HEAD + "lambda i: a[i] + 007",
    "misplaced underscore": HEAD + "lambda i: a[i] + 1__0",
    "two words": HEAD + "lambda i: a[i] b",
    "two numbers": HEAD + "lambda i: a[i] + 1 2",
    "chained comparison": HEAD + "lambda i: 0 < a[i] < 1",
    "assignment for equality": HEAD + "lambda i: a[i] = 1",
    "a loop": "def f(a):\n    for i in range(3):\n        return lambda i: a[i]",
    "a generator": HEAD + "lambda i: sum(a[i, k] for k in range(3))",
    "a branch": "def f(a):\n    if a:\n        return lambda i: a[i]",
    "a lambda alone": "lambda i: a[i]",
    "a lambda not returned": "def f(a):\n    lambda i: a[i]",
    "return misspelt": "def f(a):\n    retrun lambda i: a[i]",
    "unpacking": "def f(a):\n    n, m = a.shape\n    return lambda i: a[i, 0]",
    "any number of tensors": "def f(*a):\n    return lambda i: a[i]",
    "a product of matrices": HEAD + "lambda i: a @ a",
    "a power": HEAD + "lambda i: a[i] ^ 2",
    "bitwise and": HEAD + "lambda i: a[i] & 1",
    "two brackets": HEAD + "lambda i, j: a[i][j]",
    "length": HEAD + "lambda i: a[i] / len(a)",
    "mean": HEAD + "lambda i: mean(lambda k: a[i, k])",
    "import": HEAD + 'lambda i: __import__("os")',
    "dunder": HEAD + "lambda i: a.__class__[i]",
    "partial slice": HEAD + "lambda i: a[1:i]",
    "keyword argument": HEAD + "lambda i: exp(x=a[i])",
    "lambda in a lambda": HEAD + "lambda i: lambda j: a[i, j]",
    "annotation": "def f(a: Tensor):\n    return lambda i: a[i]",
    "brackets 65 deep": HEAD + "lambda i: " + "(" * 65 + "a[i]" + ")" * 65,
    "default that is not a number": "def f(a, *, n=sqrt): return lambda i: a[i] * n",
    "default among tensors": "def f(a, n=1): return lambda i: a[i]",
    "two stars": "def f(a, *, *, n=1): return lambda i: a[i]",
    "star without attributes": "def f(a, *): return lambda i: a[i]",
}

NAMES = {
    "unbound index": HEAD + "lambda i: a[j]",
    "unbound value": HEAD + "lambda i: a[i] * scale",
    "unknown tensor": "def f(data): return lambda i: dta[i]",
    "unknown tensor, nothing near": "def f(data): return lambda i: data[i] + w[i]",
    "unknown function": HEAD + "lambda i: tnah(a[i])",
    "softmax of a lambda": HEAD + "lambda i: softmax(lambda k: a[i, k])",
    "function of Python": HEAD + "lambda i: max(a[i], 0)",
    "unknown function, nothing near": HEAD + "lambda i: qqq(a[i])",
    "function of a module": HEAD + "lambda i: np.exp(a[i])",
    "tensor not indexed": HEAD + "lambda i: a[i] + a",
    "tensor called": HEAD + "lambda i: a(i)",
    "function not called": HEAD + "lambda i: a[i] + exp",
    "stage not indexed": "def f(a):\n    b = lambda i: a[i]\n    return lambda i: b * b[i]",
    "attribute read as a tensor": "def f(a, *, n): return lambda i: n[i] + a[i]",
    "same variable twice": HEAD + "lambda i, i: a[i]",
    "shadowing a variable": HEAD + "lambda i: Sum(lambda i: a[i])",
    "shadowing a tensor": HEAD + "lambda a: a[a]",
    "shadowing an attribute": "def f(a, *, n): return lambda n: a[n]",
    "variable named like a constant": HEAD + "lambda pi: a[pi]",
    "same tensor twice": "def f(a, a): return lambda i: a[i]",
    "tensor and attribute": "def f(a, *, a=1): return lambda i: a",
    "same stage twice": "def f(a):\n  b = lambda i: a[i]\n  b = lambda i: a[i]\n  return lambda i: b[i]",
    "opaque twice": "def f(a):\n    C = Opaque()\n    C = Opaque()\n    return lambda i: C(a[:])[i]",
    "opaque named like a function": "def f(a):\n    exp = Opaque()\n    return lambda i: exp(a[:])[i]",
    "operator calls itself": HEAD + "lambda i: f(a)[i]",
    "operator calls itself as a function": HEAD + "lambda i: f(a[i])",
    "operator reads itself": HEAD + "lambda i: f[i - 1] + a[i]",
    "stage reads itself": "def f(a):\n    b = lambda i: b[i] + a[i]\n    return lambda i: b[i]",
    "stage reads a later one": "def f(a):\n b = lambda i: c[i]\n c = lambda i: a[i]\n return lambda i: b[i]",
    "unknown result": "def f(a):\n    total = lambda i: a[i]\n    return totl",
    "unused tensor": "def f(a, b): return lambda i: a[i]",
    "unused stage": "def f(a):\n    b = lambda i: a[i]\n    return lambda i: a[i]",
    "unused opaque": "def f(a):\n    C = Opaque()\n    return lambda i: a[i]",
    "several at once": "def f(dat, filters):\n    return lambda b, x: Sum(lambda x: data[b, y]) + tnah(b, 1)",
}

FORMS = {
    "reducer without a lambda": HEAD + "lambda i: Sum(a[i])",
    "reducer of nothing": HEAD + "lambda i: a[i] + Sum()",
    "reducer of two lambdas": HEAD + "lambda i: Max(lambda j: a[j], lambda k: a[i])",
    "lambda as a value": HEAD + "lambda i: exp(lambda j: a[i])",
    "wrong arity": HEAD + "lambda i: exp(a[i], 1)",
    "pad with one argument": HEAD + "lambda i: pad(a[i])",
    "pad of no element": HEAD + "lambda i: pad(a[i] + 1, 0)",
    "slice outside an opaque": HEAD + "lambda i: a[i] + a[:]",
    "slice as a value": HEAD + "lambda i: a[i] + Sum(:)",
    "attribute indexed by a slice": "def f(a, *, k): return lambda i: a[i] * k[:]",
    "attribute indexed by a star": "def f(a, *, k): return lambda *i: a[*i] * k[*i]",
    "called expression, called again": HEAD + "lambda i: a[i](i)(i)",
    "star as a value": HEAD + "lambda *i: a[*i] + i",
    "star of a single variable": HEAD + "lambda i: a[*i]",
    "star unbound": HEAD + "lambda i: a[i, *k]",
    "shape without an axis": HEAD + "lambda i: a[i] / a.shape",
    "shape of no number": HEAD + "lambda i: a[i] / a.shape[i]",
    "indexed expression": HEAD + "lambda i: (a[i])[i]",
    "called expression": HEAD + "lambda i: a[i](i)",
    "attribute index that varies": "def f(a, *, k): return lambda i: a[i] * k[i]",
    "number attribute indexed": "def f(a, *, k=1): return lambda i: a[i] * k[0]",
    "tuple attribute not indexed": "def f(a, *, k=(1, 2)): return lambda i: a[i] * k",
    "attribute indexed beyond its default": "def f(a, *, k=(1, 2)): return lambda i: a[i] * k[2] + k[1]",
    "attribute as both": "def f(a, *, k): return lambda i: a[i] * k + k[1]",
    "stage of no lambda": "def f(a):\n    b = 3\n    return lambda i: a[i]",
    "opaque with arguments": "def f(a):\n    C = Opaque(1)\n    return lambda i: C(a[:])[i]",
    "opaque without a name": HEAD + "lambda i: a[i] + Opaque()",
    "opaque not called": "def f(a):\n    C = Opaque()\n    return lambda i: C[i] + a[i]",
    "opaque as a value": "def f(a):\n    C = Opaque()\n    return lambda i: C(a[:])[i] + C",
    "opaque not indexed": "def f(a):\n    C = Opaque()\n    return lambda i: C(a[i, :])",
    "opaque of a value": "def f(a):\n    C = Opaque()\n    return lambda i: C(a[i] + 1)[i]",
    "opaque of nothing": "def f(a):\n    C = Opaque()\n    return lambda i: C()[i] + a[i]",
}

FOLD = "def f(x, *, n=1):\n    Fold = Reducer(%s)\n    return lambda i: Fold(lambda k: x[i, k]) + n"

STATEMENTS = {
    "constant of an index variable": "def f(a):\n    half = i + 1\n    return lambda i: a[half]",
    "constant of a tensor": "def f(a):\n    half = a\n    return lambda i: a[i] * half",
    "constant of a shape": "def f(a):\n    s = a.shape\n    return lambda i: a[i] * s",
    "constant of a later constant": "def f(a):\n    c = d\n    d = 3\n    return lambda i: a[i] * c",
    "constant of itself": "def f(a):\n    c = c + 1\n    return lambda i: a[i] * c",
    "constant twice": "def f(a):\n    c = 2\n    c = 3\n    return lambda i: a[i] * c",
    "constant and stage": "def f(a):\n    c = 2\n    c = lambda i: a[i]\n    return lambda i: a[i] * c[i]",
    "constant named like a tensor": "def f(a):\n    a = 2\n    return lambda i: a[i]",
    "variable named like a constant of the text": "def f(a):\n    c = 2\n    return lambda c: a[c]",
    "fraction as an extent": "def f(a):\n    c = 1 / 2\n    return lambda i=c: a[i]",
    "division by a constant of zero": "def f(a):\n    c = 0\n    return lambda i: a[i] // c",
    "constant returned": "def f(a):\n    c = 2\n    return c",
    "constants too long": "def f(a):\n    c0 = 2 + 2\n"
    + "".join(f"    c{n + 1} = c{n} + c{n}\n" for n in range(40))
    + "    return lambda i: a[i] * c40",
    "scalar stage with indices": "def f(a):\n    m = Sum(lambda i: a[i])\n    return lambda i: m[i]",
    "scalar stage of a free variable": "def f(a):\n    m = a[j]\n    return lambda i: a[i] * m",
    "scalar stage not used": "def f(a):\n    m = Sum(lambda i: a[i])\n    return lambda i: a[i]",
    "positions of positions": "def f(a):\n    return lambda i: "
    + "".join(f"ArgMax(lambda k{n}: a[k{n}] + " for n in range(40))
    + "1"
    + ")" * 40,
    "position of several variables": "def f(a):\n    return lambda i: ArgMax(lambda j, k: a[j, k])",
    "position over a star": "def f(a):\n    return lambda i: ArgMin(lambda *j: a[*j])",
    "position of an element": "def f(a):\n    return lambda i: ArgMax(a[i])",
    "position over an unknown extent": "def f(a):\n    return lambda i: ArgMax(lambda k: a[i])",
}

CALLEES = (
    "def softmax(x):\n    top = lambda: Max(lambda k: x[k])\n"
    "    return lambda j: exp(x[j] - top) / Sum(lambda k: exp(x[k] - top))\n"
    "def scaled(x, *, by):\n    return lambda *i: x[*i] * by\n"
    "def both(x):\n    return lambda i: x[i], lambda i: -x[i]\n"
    "def hidden(x):\n    F = Opaque()\n    return lambda i: F(x[:])[i]\n"
    "def first(x):\n    return lambda i=x.shape[1]: i\n"
)

CALLS = {
    name: f"{CALLEES}def f(a):\n    return {result}"
    for name, result in {
        "call without indices": "lambda i: softmax(a)",
        "too many tensors": "lambda i: softmax(a, a)[i]",
        "unknown attribute": "lambda i: softmax(a, axis=1)[i]",
        "attribute without a value": "lambda i: scaled(a)[i]",
        "attribute that depends on data": "lambda i: scaled(a, by=a[i])[i]",
        "attribute that depends on a variable": "lambda i: scaled(a, by=i)[i]",
        "slice at a shifted index": "lambda i: softmax(a[i + 1, :])[i]",
        "slice of too many dimensions": "lambda i: softmax(a[:, :])[i]",
        "slice without the dimension that is asked for": "lambda i: first(a[:])[i]",
        "slice at an unknown variable": "lambda i: softmax(a[j, :])[i]",
        "stars over dimensions that are apart": "lambda i, j, k: scaled(a[:, i, :], by=2)[j, k]",
        "value in place of a tensor": "lambda i: softmax(exp(a[i]))[i]",
        "unknown tensor in a call": "lambda i: softmax(aa)[i] + a[i]",
        "description with several outputs": "lambda i: both(a)[i]",
        "description with an opaque function": "lambda i: hidden(a)[i]",
        "description not called": "lambda i: softmax + a[i]",
        "attribute of a function": "lambda i: exp(by=a[i])",
    }.items()
} | {
    "two descriptions of one name": "def f(a):\n    return lambda i: a[i]\n" * 2,
    "call of a later description": "def f(a):\n    return lambda i: g(a)[i]\n"
    "def g(a):\n    return lambda i: a[i]",
    "calls that double": "def g0(a):\n    return lambda i: a[i]\n"
    + "".join(
        f"def g{n}(a):\n    s = lambda i: g{n - 1}(a)[i]\n    return lambda i: g{n - 1}(s)[i]\n"
        for n in range(1, 13)
    ),
}

REDUCERS = {
    "not commutative": FOLD % "lambda a, b: a - b, 0",
    "not associative": FOLD % "lambda a, b: (a + b) / 2, 0",
    "identity that changes a value": FOLD % "lambda a, b: a * b, 0",
    "no identity": FOLD % "lambda a, b: a + b",
    "identity that is not a number": FOLD % "lambda a, b: a + b, n",
    "one variable": FOLD % "lambda a: a, 0",
    "three variables": FOLD % "lambda a, b, c: a + b + c, 0",
    "starred variable": FOLD % "lambda a, *b: a, 0",
    "variable with an extent": FOLD % "lambda a, b=2: a + b, 0",
    "no lambda": FOLD % "0, 0",
    "nothing": FOLD % "",
    "padded element": FOLD % "lambda a, b: a + b + pad(x[0, 0], 0), 0",
    "opaque function": FOLD.replace("Fold =", "C = Opaque()\n    Fold =")
    % "lambda a, b: a + b + C(x[0, :])[0], 0",
    "variable not used": FOLD % "lambda a, b: exp(a), 0",
    "tensor": FOLD % "lambda a, b: a + b + x[0, 0], 0",
    "shape, attribute and reducer": FOLD % "lambda a, b: a + b * n + x.shape[0] + Sum(lambda k=2: k), 0",
    "unknown names": FOLD % "lambda a, b: tnah(a) + b + c, 0",
    "wrong arity in a reducer": FOLD % "lambda a, b: maximum(a, b, a), 0",
    "variables of one name": FOLD % "lambda a, a: a + a, 0",
    "variable named like a tensor": FOLD % "lambda a, x: a + x, 0",
    "named like a function": (
        "def f(x):\n    Sum = Reducer(lambda a, b: a + b, 0)\n    return lambda i: Sum(lambda k: x[i, k])"
    ),
    "never used": "def f(x):\n    Fold = Reducer(lambda a, b: a + b, 0)\n    return lambda i: x[i]",
    "declared twice": FOLD.replace("Fold = R", "Fold = Opaque()\n    Fold = R") % "lambda a, b: a + b, 0",
    "without a name": HEAD + "lambda i: a[i] + Reducer(lambda p, q: p + q, 0)",
    "not given a lambda": FOLD.replace("lambda k: x[i, k]", "x[i, i]") % "lambda a, b: a + b, 0",
    "not called": FOLD.replace("+ n", "+ n + Fold") % "lambda a, b: a + b, 0",
    "indexed": FOLD.replace("+ n", "+ n + Fold[i]") % "lambda a, b: a + b, 0",
    "misspelt": FOLD.replace("i: Fold", "i: Flod") % "lambda a, b: a + b, 0",
    "misspelt, of the language": HEAD + "lambda i: max(lambda k: a[i, k])",
    "unknown, nothing near": HEAD + "lambda i: Qqq(lambda k: a[i, k])",
}

RANKS = {
    "wrong rank": HEAD + "lambda i, j: a[i, j] * a[i]",
    "wrong rank with a star": HEAD + "lambda *i: a[*i] + Sum(lambda j, k: a[j, k, *i]) + Sum(lambda j: a[j])",
    "stage at the wrong rank": "def f(a):\n    b = lambda i: a[i]\n    return lambda i, j: b[i, j]",
    "axis outside the rank": HEAD + "lambda i: a[i] / a.shape[1]",
    "opaque result at another rank than its slice": (
        "def f(m):\n    C = Opaque()\n    return lambda b, i: C(m[b, :, :])[i]"
    ),
    "opaque result at two ranks": (
        "def f(m):\n    C = Opaque()\n    return lambda b, i=2: C(m[b, :, :])[i] + C(m[b, :, :])[i, i]"
    ),
    "opaque with two numbers of arguments": (
        "def f(m):\n    C = Opaque()\n    return lambda b, i: C(m[b, :])[i] + C(m[b, :], m[b, :])[i]"
    ),
}

INDICES = {
    "product of variables": HEAD + "lambda x, y: a[x * y]",
    "square of a variable": HEAD + "lambda x: a[x * x]",
    "product of sums": HEAD + "lambda x, y: a[2 * (x + 1) * (y - 1)]",
    "power": HEAD + "lambda x: a[x ** 2]",
    "quotient by a variable": HEAD + "lambda x, y: a[x // y]",
    "function of a variable": HEAD + "lambda x: a[sign(x)]",
    "choice of indices": HEAD + "lambda x: a[where(x > 1, x, 1)]",
    "product in a minimum": HEAD + "lambda x: a[abs(minimum(x, x * x))]",
    "comparison": HEAD + "lambda x: a[x > 1]",
    "reduction": HEAD + "lambda x: a[Sum(lambda k=3: x + k)]",
    "negative power in an extent": HEAD + "lambda i=2 ** -1: a[i]",
    "floor of zero": HEAD + "lambda x: a[x // 0]",
    "remainder by zero": HEAD + "lambda x: a[x % 0]",
    "quotient by zero": HEAD + "lambda x: a[x] / 0",
    "float": HEAD + "lambda x: a[x + 0.5]",
    "float that is whole": HEAD + "lambda x: a[2.0 * x]",
    "true division": HEAD + "lambda x: a[x / 2]",
    "fraction from data": HEAD + "lambda x: a[exp(a[x])]",
    "extent unknown": HEAD + "lambda i: a[i] * Sum(lambda k: 2)",
    "output extent unknown": HEAD + "lambda i, j: a[i]",
    "starred rank unknown": HEAD + "lambda i, *j: a[i]",
    "two starred variables, one tensor": HEAD + "lambda *i, *j: a[*i, *j]",
    "starred variables that no rank separates": "def f(a, b): return lambda *i, *j: a[*i, *j] + b[*j, *i]",
    "starred variables of a reducer and a lambda": HEAD + "lambda *i: Sum(lambda *j: a[*i, *j])",
    "extent from a variable": HEAD + "lambda i: a[i] * Sum(lambda k=i: k)",
    "extent from a tensor": HEAD + "lambda i=a[0]: a[i]",
    "fractional extent": HEAD + "lambda i=a.shape[0] / 2: a[i]",
    "unknown name in an extent": HEAD + "lambda i=n: a[i]",
    "misspelt attribute in an extent": "def f(a, *, kernel): return lambda i=krnel[0], j=kernelx: a[i + j]",
}

BORDER = """def border(x, *, width=1, mode="edge"):
    return lambda i: x[i] if mode == "edge" else width if mode == "constant" else -x[i]
"""
CHOICES = {
    "one word": 'def f(a, *, mode="edge"):\n    return lambda i: a[i] if mode == "edge" else 0',
    "never compared": 'def f(a, *, mode="edge"):\n    return lambda i: a[i]',
    "number compared with a string": (
        'def f(a, *, mode=1):\n    return lambda i: a[i] if mode == "edge" else 0'
    ),
    "element compared with a string": 'def f(a):\n    return lambda i: a[i] == "edge"',
    "string as a value": 'def f(a):\n    return lambda i: a[i] + "edge"',
    "choice as a value": BORDER.replace("else -x[i]", "else mode"),
    "choice with an index": BORDER.replace("else -x[i]", "else mode[0]"),
    "not a word": BORDER.replace('"edge"', '"at the edge"'),
    "string that is not closed": BORDER.replace('"constant"', '"constant'),
    "call with an unknown word": BORDER + 'def f(a):\n    return lambda i: border(a, mode="edg")[i]',
    "call with a number for a word": BORDER + "def f(a):\n    return lambda i: border(a, mode=1)[i]",
    "call with a word for a number": BORDER + 'def f(a):\n    return lambda i: border(a, width="edge")[i]',
    "choice in an index that is not affine": (
        'def f(a, *, mode="edge"):\n    return lambda i=4: a[i * i if mode == "edge" else i - (mode == "no")]'
    ),
}


GROUPS = {
    "calls": CALLS,
    "choices": CHOICES,
    "statements": STATEMENTS,
    "text": TEXT,
    "names": NAMES,
    "forms": FORMS,
    "reducers": REDUCERS,
    "ranks": RANKS,
    "indices": INDICES,
}


def complaint(text: str) -> tdl.SourceError:
    with pytest.raises(DescriptionError) as caught:
        tdl.parse(text)
    assert isinstance(caught.value, tdl.SourceError)
    return caught.value


@pytest.mark.parametrize("group", GROUPS)
def test_messages(group: str, golden: Callable[[str, str], None]) -> None:
    sections = [f"== {name}\n{complaint(text)}\n" for name, text in GROUPS[group].items()]
    golden(f"{group}.txt", "\n".join(sections))


@pytest.mark.parametrize("text", [text for cases in GROUPS.values() for text in cases.values()])
def test_every_place_lies_in_the_text(text: str) -> None:
    for diagnostic in complaint(text).diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= max(len(text), 1)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (HEAD + "lambda x x: a[x]", [(2, 21)]),
        (HEAD + "lambda i: a[i + \uff11]", [(2, 28)]),
        (NAMES["several at once"], [(2, 36), (2, 39), (2, 47), (2, 53)]),
        ("def f(a): return lambda i: a[j]", [(1, 30)]),
    ],
)
def test_places(text: str, places: list[tuple[int, int]]) -> None:
    error = complaint(text)
    assert [error.source.position(found.span.start) for found in error.diagnostics] == places


@pytest.mark.parametrize("bracket", ["([", "[[", "(("])
def test_the_caret_of_an_open_bracket_stands_under_it(bracket: str) -> None:
    _, line, carets, _ = str(complaint(HEAD + f"lambda i: a{bracket}i")).split("\n")[:4]
    assert line[carets.index("^")] == bracket[0]


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        HEAD + "lambda i: a[i]  # " + "\u5e45" * 22_000,
        HEAD + "lambda i: " + "(" * 100_000,
        HEAD + "lambda i: " + "[" * 60_000,
        HEAD + "lambda i: " + "-" * 65_000 + "a[i]",
        HEAD + "lambda i: " + "- " * 200 + "a[i]",
        HEAD + "lambda i: " + "not " * 16_000 + "a[i]",
        HEAD + "lambda i: " + "1+" * 20_000 + "a[i]",
        HEAD + "lambda i: " + "1+" * 5_000 + "a[i]",
        HEAD + "lambda i: " + "1**" * 5_000 + "a[i]",
        HEAD + "lambda i: " + "1 if 1 else " * 4_000 + "a[i]",
        HEAD + "lambda i: a[i]" + "[i]" * 5_000,
        HEAD + "lambda i: a" + ".b" * 8_000,
        HEAD + "lambda i: " + "a[i] + " * 9_000 + "a[i]",
        "def f(a, *, n=" + "-" * 8_000 + "1): return lambda i: a[i] * n",
        "@" + "a." * 8_000 + "b\n" + HEAD + "lambda i: a[i]",
        HEAD + "lambda " + ", ".join(f"i{n}" for n in range(7_000)) + ": a[0]",
    ],
)
def test_hostile_text_is_refused_at_once(text: str) -> None:
    with no_hang():
        if text.startswith("@"):
            tdl.parse(text)
        else:
            complaint(text)


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        ("(" * 64 + "1" + ")" * 64, "(" * 65 + "1" + ")" * 65),
        ("+ i" * 120, "+ i" * 130),
        ("- " * 120 + "i", "- " * 130 + "i"),
        ("1 if i else " * 64 + "i", "1 if i else " * 130 + "i"),
        ("2 ** " * 120 + "i", "2 ** " * 130 + "i"),
        ("exp(-" * 62 + "i" + ")" * 62, "exp(-" * 64 + "i" + ")" * 64),
    ],
)
def test_nesting_up_to_the_limit_works_throughout(within: str, beyond: str) -> None:
    description = tdl.parse(HEAD + f"lambda i: a[i] - {within}".replace("- +", "+"))
    assert tdl.parse(tdl.format(description)) == description
    values = {"a": np.ones(1)}
    assert tdl.interpret(description, {"i": 1}, values, {})[0].shape == (1,)
    error = complaint(HEAD + f"lambda i: a[i] - {beyond}".replace("- +", "+"))
    assert [found.message for found in error.diagnostics] == ["the description is nested too deeply"]


def test_canonical_text_stays_within_the_limits() -> None:
    error = complaint(HEAD + "lambda i: a[i] + " + "1 if i else " * 65 + "i")
    assert error.diagnostics[0].message == "in canonical text, the description is nested too deeply"
    stages = ";".join(f"s{n}=lambda i:a[i]" + "+i" * 100 for n in range(70))
    text = f"def f(a):{stages};return(lambda i:" + "+".join(f"s{n}[i]" for n in range(70)) + ")"
    assert len(text) < 64 * 1024
    tdl.parse(text)
    variable = "i" * 7
    named = (
        text.replace("+i", f"+{variable}")
        .replace("lambda i", f"lambda {variable}")
        .replace("[i]", f"[{variable}]")
    )
    assert len(named) < 64 * 1024
    assert "is too long" in complaint(named).diagnostics[0].message


def test_text_up_to_the_limit_works() -> None:
    text = HEAD + "lambda i: a[i]  #"
    limit = 64 * 1024
    assert tdl.parse(text.ljust(limit, "-")) == tdl.parse(text)
    assert "is too long" in str(complaint(text.ljust(limit + 1, "-")))


def test_long_errors_are_counted_not_listed() -> None:
    text = HEAD + "lambda i: " + " + ".join(f"a[x{n}]" for n in range(60)) + " + a[i]"
    assert str(complaint(text)).endswith("and 40 more errors")


def test_origin_and_first_line_are_named() -> None:
    with pytest.raises(DescriptionError, match=r"^ops\.py:12:26: expected"):
        tdl.parse("def f(a):\n    return lambda i: a[i b]", origin="ops.py", first_line=11)

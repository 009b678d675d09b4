"""Signs of constants hold for all extents, and nested extremes take a time that grows with their length."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
import sympy

from tests.hangs import no_hang
from tofu import tdl
from tofu.analyzer.bind.staged_bound import bind
from tofu.analyzer.indices.affine import extent_symbol
from tofu.analyzer.indices.constants import floor_quotient, greatest, least, sign
from tofu.analyzer.indices.evaluate import compile_integers
from tofu.analyzer.specialize.specialize import specialize

A, B = extent_symbol("a", 0), extent_symbol("b", 0)


def drawn(random: Random, depth: int) -> sympy.Expr:
    if depth == 0:
        return random.choice((A, B, sympy.Integer(random.randint(-3, 3))))
    left, right = drawn(random, depth - 1), drawn(random, depth - 1)
    divisor = random.choice((A, B, A * B, sympy.Integer(2)))
    forms = (left + right, left * right, -left, left**2, floor_quotient(left, divisor))
    return random.choice((*forms, least(left, right), greatest(left, right)))


@pytest.mark.parametrize("seed", range(40))
def test_signs_hold_for_all_extents(seed: int) -> None:
    random = Random(seed)
    constants = [drawn(random, 3) for _ in range(20)]
    signs = [sign(constant) for constant in constants]
    program = compile_integers(constants, [A, B])
    for extents in product((0, 1, 2, 5), repeat=2):
        for value, found in zip(program.integers(list(extents)), signs, strict=True):
            assert value >= 0 or not found.nonnegative
            assert value <= 0 or not found.nonpositive


@pytest.mark.parametrize(
    ("constant", "nonnegative", "nonpositive"),
    [
        (A * B + 2, True, False),
        (-A - 1, False, True),
        (A - B, False, False),
        ((A - B) ** 2, True, False),
        (floor_quotient(-A, B), False, True),
        (greatest(A - B, sympy.Integer(1)), True, False),
        (least(A, -B), False, True),
        (sympy.Integer(0), True, True),
    ],
)
def test_signs_that_are_known(constant: sympy.Expr, nonnegative: bool, nonpositive: bool) -> None:
    assert sign(constant) == (nonnegative, nonpositive)


def test_nested_extremes_are_divisors_soon() -> None:
    """Sympy's assumptions took a time exponential in the depth."""
    lines = ["n0 = a.shape[0]"]
    lines += [f"n{d} = maximum(n{d - 1} // 2, a.shape[0] - {d})" for d in range(1, 15)]
    body = "".join(f"    {line}\n" for line in lines)
    text = f"def f(a):\n{body}    return lambda i=3: pad(a[i // (n14 * n14)], 0)"
    with no_hang():
        bound = bind(specialize(tdl.parse(text), {}, {"a": 1}), {"a": (29,)})
    assert bound.output_shapes == ((3,),)

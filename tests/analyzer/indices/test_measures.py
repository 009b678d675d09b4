"""Signs of formulas hold for all extents, and nested extremes take a time that grows with their length."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from tests.hangs import no_hang
from tofu import tdl
from tofu.analyzer.bind.staged_bound import bind
from tofu.analyzer.indices.affine import extent_symbol
from tofu.analyzer.indices.evaluate import compile_integers
from tofu.analyzer.indices.formula import Formula, floor_quotient, greatest, integer, least
from tofu.analyzer.indices.measures import bits, divisors_in, sign, tree_size
from tofu.analyzer.specialize.specialize import specialize

A, B = extent_symbol("a", 0), extent_symbol("b", 0)


def drawn(random: Random, depth: int) -> Formula:
    if depth == 0:
        return random.choice((A, B, integer(random.randint(-3, 3))))
    left, right = drawn(random, depth - 1), drawn(random, depth - 1)
    divisor = random.choice((A, B, A * B, integer(2)))
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
        (greatest(A - B, integer(1)), True, False),
        (least(A, -B), False, True),
        (integer(0), True, True),
    ],
)
def test_signs_that_are_known(constant: Formula, nonnegative: bool, nonpositive: bool) -> None:
    assert sign(constant) == (nonnegative, nonpositive)


def test_nested_extremes_are_divisors_soon() -> None:
    """With a time that doubles at each level this would not end."""
    lines = ["n0 = a.shape[0]"]
    lines += [f"n{d} = maximum(n{d - 1} // 2, a.shape[0] - {d})" for d in range(1, 15)]
    body = "".join(f"    {line}\n" for line in lines)
    text = f"def f(a):\n{body}    return lambda i=3: pad(a[i // (n14 * n14)], 0)"
    with no_hang():
        bound = bind(specialize(tdl.parse(text), {}, {"a": 1}), {"a": (29,)})
    assert bound.output_shapes == ((3,),)


def test_sizes_and_bits() -> None:
    quotient = floor_quotient(A - 1, B)
    sizes = {integer(5): 1, A: 1, 2 * A: 3, A + B: 3, A * B + 1: 5, quotient: 5}
    assert {each: tree_size(each) for each in sizes} == sizes
    most = {integer(5): 3, integer(-8): 4, A: 64, A * B: 128, A**3: 192, A + B: 66}
    assert {each: bits(each) for each in most} == most
    assert list(divisors_in(quotient * 2 + least(floor_quotient(A, integer(3)), A))) == [B]

"""Search for texts whose time grows too fast: every construct inside every other one, deeper and deeper.

A trial is a pair of constructs that stand inside each other in turns, to twice the depth each time until the
text is refused or the limit of nesting is passed. Each text is parsed, specialised, bound and asked for its
strategies. Times are compared with the lengths of texts: if a time that can be measured grows faster than the
square of the length, that is a failure, as is a text that takes longer than the limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from random import Random
from time import process_time

from tests.tdl.random_texts import NESTED
from tofu import tdl
from tofu.analyzer.bind.staged_bound import bind
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import TofuError

from .guard import Guard
from .texts import forget

INDICES = tuple(each.replace("{n}", "7") for each in NESTED)
"""Constructs of an index."""

VALUES = (
    *("({})", "-{}", "({} + 1)", "(2 - {})", "({} * 3)", "(1 / (2 + {}))", "({} ** 2)", "({} + {})"),
    *("({} * {})", "exp({})", "abs({})", "sqrt({})", "maximum({}, 0)", "minimum({}, {})", "not {}"),
    *("({} if a[i] < 1 else 0)", "(0 if {} < 1 else 1)", "where({} < 1, {}, 0)", "({} and True)", "({} < 3)"),
    *("Sum(lambda k{d}=2: {} + k{d})", "Max(lambda k{d}=2: {} * a[k{d}])", "Prod(lambda k{d}=2: {})"),
)
"""Constructs of a value; `{d}` is their depth, for names of their own."""

CHAINS = (
    *("s{d} = lambda i: {}[i]", "s{d} = lambda i: {}[i] + {}[i]"),
    *("s{d} = lambda i: Sum(lambda k=2: {}[i] + k)", "s{d} = lambda i={}.shape[0] // 2 + 1: pad({}[i], 0)"),
    *(
        "s{d} = lambda i: ArgMax(lambda k: {}[k] * a[i])",
        "s{d} = lambda i: exp(Sum(lambda k: {}[k])) * {}[i]",
    ),
)
"""Named stages, each of which reads the one before."""

SCALARS = (
    *("s{d} = {} + {}", "s{d} = Sum(lambda i: a[i] * {} + {})", "s{d} = exp({}) * Sum(lambda k: a[k])"),
    *("s{d} = {} + {} + a.shape[0]", "s{d} = {} // 2 + 7", "s{d} = maximum({} // 2, a.shape[0] - {d})"),
    *("s{d} = a.shape[0] // ({} + 1)", "s{d} = {} * 2 + a.shape[0]", "s{d} = minimum({}, {} // 3)"),
)
"""Scalar stages and named constants, each of which reads the one before."""

CALLED = (
    *("return lambda i: {}(x)[i] + 1", "return lambda i: {}(x)[i] * Sum(lambda k: {}(x)[k])"),
    *("t = lambda i: x[i] + {d}\n    return lambda i: {}(x)[i] + {}(t)[i]", "return lambda i: x[i] + {d}"),
)
"""Results of descriptions, each of which may call the one before."""

FORGET_EVERY = 50
"""The number of pairs after which caches are emptied."""

DEEPEST = 1024
LONGEST = 1 << 17
MOST_NOISE = 2.0
"""How much more than the square of the length a time may grow."""

LEAST_SECONDS = 0.005
MEASURABLE_SECONDS = 0.05
"""Shorter times are noise."""


def nesting(numbers: Iterable[int], seed: int, limit: float) -> Guard:
    """Try pairs of constructs in a random order."""
    guard = Guard(limit)
    pairs = [
        *((first, second, True) for first, second in product(INDICES, repeat=2)),
        *((first, second, False) for first, second in product(VALUES, repeat=2)),
        *((each, each, False) for each in (*CHAINS, *SCALARS, *CALLED)),
    ]
    Random(seed).shuffle(pairs)
    for number in numbers:
        if number >= len(pairs):
            break
        if number % FORGET_EVERY == 0:
            forget()
        _grow(guard, *pairs[number])
    return guard


def _grow(guard: Guard, first: str, second: str, index: bool) -> None:
    """Double the depth of a pair of constructs until it is refused."""
    depth, before, shorter = 1, 0.0, ""
    guard.counts["pairs"] += 1
    while depth <= DEEPEST:
        text = _text(first, second, depth, index)
        if text is None:
            guard.counts["too long"] += 1
            return
        guard.counts["texts"] += 1
        hangs, started, refused = guard.counts["hangs"], process_time(), False
        with guard.trial("text", text):
            refused = not _accepted(text)
        taken = process_time() - started
        if depth > 1 and taken > max(MEASURABLE_SECONDS, _most(text, shorter, before)):
            before, taken = _least(shorter), _least(text)  # a pause of the garbage collector is not a growth
            if taken > max(MEASURABLE_SECONDS, _most(text, shorter, before)):
                why = f"{before:.3f} s for {len(shorter)} characters, {taken:.3f} s for {len(text)}"
                guard.fail("growths", text, why)
        if refused:
            guard.counts["refused"] += 1
            return
        if guard.counts["hangs"] > hangs:
            return
        depth, before, shorter = 2 * depth, taken, text
    guard.counts["deepest"] += 1


def _most(text: str, shorter: str, before: float) -> float:
    """Return the most seconds that a text may take, if a shorter one took `before`."""
    return MOST_NOISE * (len(text) / len(shorter)) ** 2 * max(before, LEAST_SECONDS)


def _least(text: str) -> float:
    """Return the least of three processor times of a text."""
    found = []
    for _ in range(3):
        started = process_time()
        _accepted(text)
        found.append(process_time() - started)
    return min(found)


def _text(first: str, second: str, depth: int, index: bool) -> str | None:
    """Return constructs inside each other; None if the text would be too long."""
    if first in (*CHAINS, *SCALARS):
        return _statements(first, depth)
    if first in CALLED:
        return _descriptions(first, depth)
    whole = "i" if index else "a[i]"
    for level in range(depth):
        construct = (first, second)[level % 2]
        if len(whole) * construct.count("{}") > LONGEST:
            return None
        whole = _filled(construct, whole, level)
    body = f"pad(a[{whole}], 0)" if index else whole
    return f"def f(a):\n    return lambda i=9: {body}"


def _statements(statement: str, depth: int) -> str:
    """Return named stages or constants, each of which reads the one before."""
    first, last = "a.shape[0]", f"lambda i=3: pad(a[i // (s{depth} * s{depth} + 1)], 0)"
    if statement in CHAINS:
        first, last = "lambda i: a[i]", f"lambda i: s{depth}[i]"
    elif "Sum" in statement:
        first, last = "Sum(lambda i: a[i])", f"lambda i: a[i] * s{depth}"
    lines = [f"s0 = {first}", *(_filled(statement, f"s{level}", level + 1) for level in range(depth))]
    return "\n".join(["def f(a):", *(f"    {line}" for line in (*lines, f"return {last}"))])


def _descriptions(result: str, depth: int) -> str:
    """Return descriptions, each of which may call the one before."""
    bodies = ["return lambda i: x[i]", *(_filled(result, f"f{level}", level + 1) for level in range(depth))]
    return "\n".join(f"def f{level}(x):\n    {body}" for level, body in enumerate(bodies))


def _filled(construct: str, inner: str, level: int) -> str:
    return construct.replace("{d}", str(level)).replace("{}", inner)


def _accepted(text: str) -> bool:
    """Analyse a text; tell whether it was accepted."""
    try:
        description = tdl.parse(text)
        (tensor,) = description.tensor_names
        bound = bind(specialize(description, {}, {tensor: 1}), {tensor: (9,)})
        for strategy in bound.strategies:
            strategy.input_regions(worker=1, workers=2)
    except TofuError:
        return False
    return True

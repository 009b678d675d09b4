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

STAGES = ("s{d} = lambda i: {}", "s{d} = lambda i: {} + {}", "s{d} = lambda i: Sum(lambda k=2: {} + k)")
"""Named stages, each of which reads the one before."""

FORGET_EVERY = 50
"""The number of pairs after which caches are emptied."""

DEEPEST = 128
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
        *((stage, stage, False) for stage in STAGES),
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
        text = _stages(first, depth) if first in STAGES else _text(first, second, depth, index)
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
    whole = "i" if index else "a[i]"
    for level in range(depth):
        construct = (first, second)[level % 2].replace("{d}", str(level))
        if len(whole) * construct.count("{}") > LONGEST:
            return None
        whole = construct.replace("{}", whole)
    body = f"pad(a[{whole}], 0)" if index else whole
    return f"def f(a):\n    return lambda i=9: {body}"


def _stages(stage: str, depth: int) -> str:
    """Return named stages, each of which reads the one before."""
    lines = [
        "    " + stage.replace("{d}", str(level)).replace("{}", f"s{level - 1}[i]" if level else "a[i]")
        for level in range(depth)
    ]
    return "\n".join(["def f(a):", *lines, f"    return lambda i: s{depth - 1}[i]"])


def _accepted(text: str) -> bool:
    """Analyse a text; tell whether it was accepted."""
    try:
        bound = bind(specialize(tdl.parse(text), {}, {"a": 1}), {"a": (9,)})
        for strategy in bound.strategies:
            strategy.input_regions(worker=1, workers=2)
    except TofuError:
        return False
    return True

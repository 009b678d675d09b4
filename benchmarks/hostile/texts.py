"""Whatever the text, the outcome is a description or one of Tofu's errors, soon, and nothing is executed.

Texts are written by the grammar, nest constructs of indices deeply, or are known descriptions damaged by
tokens or by bytes. An accepted text is printed and parsed again, and must give an equal tree. Of the
accepted texts every tenth, and all that nest deeply, are bound to random shapes: their strategies, regions
and refusals are asked for, and their interpretation if it is small.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from random import Random
from typing import Any

import numpy as np

from tests.tdl.random_texts import SEEDS, damaged_bytes, damaged_tokens, nested, written
from tofu import operators, tdl
from tofu.analyzer.bind.staged_bound import bind
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import OperatorError, TofuError
from tofu.operators.callables import Callables
from tofu.tdl import ast

from .guard import Guard

ANALYSE_EVERY = 10
SMALL = 300
"""Elements of an iteration space that is interpreted."""
FORGET_EVERY = 10_000
LIBRARY = Callables({})
"""The operators that a text may call."""


def texts(numbers: Iterable[int], seed: int, limit: float) -> Guard:
    """Try one random text for each number."""
    guard = Guard(limit, allowed=frozenset({"compile"}))  # words of attributes are parsed as literals
    fuzz = Fuzz(guard)
    for number in numbers:
        if number % FORGET_EVERY == 0:
            forget()
            print(f"{number:,} texts, {dict(fuzz.counts)}", file=sys.stderr, flush=True)
        fuzz.one(Random(f"{seed} {number}"))
    return fuzz.guard


class Fuzz:
    """One run: random texts, and what became of them."""

    def __init__(self, guard: Guard) -> None:
        self.random = Random()
        self.guard = guard
        self.corpus = (*SEEDS, *library_texts())
        self.counts = guard.counts

    def one(self, random: Random) -> None:
        """Make one text and see what becomes of it."""
        self.random = random
        kind = self.random.choices(("written", "tokens", "bytes", "nested"), (10, 44, 44, 2))[0]
        self.counts[kind] += 1
        match kind:
            case "written":
                text = written(self.random)
            case "nested":
                text = nested(self.random)
            case "tokens":
                text = damaged_tokens(self.random, self.corpus)
            case _:
                text = damaged_bytes(self.random, self.corpus)
        description = None
        with self.guard.trial("parse", text), self.guard.watching():
            try:
                description = tdl.parse(text, callables=LIBRARY)
            except TofuError:
                self.counts["refused"] += 1
                return
        if description is None:
            return
        self.counts["accepted"] += 1
        with self.guard.trial("print and parse", text), self.guard.watching():
            printed = tdl.format(description)
            assert tdl.parse(printed) == description, printed
        if kind == "nested" or self.random.randrange(ANALYSE_EVERY) == 0:
            with self.guard.trial("analysis", text):
                self.analyse(description)

    def analyse(self, description: ast.Description) -> None:
        """Bind to random shapes and ask for everything; errors of Tofu's own are fine."""
        self.counts["analysed"] += 1
        extents = self.random.choice(((0, 1, 2, 3, 4, 5, 7), (3, 5), (6,), (9,)))
        shapes = {
            name: tuple(self.random.choice(extents) for _ in range(rank))
            for name, rank in self.ranks(description).items()
        }
        try:
            special = specialize(description, self.attributes(description), _lengths(shapes))
            bound = bind(special, shapes)
        except TofuError:
            self.counts["not bound"] += 1
            return
        self.counts["bound"] += 1
        assert {s.variable for s in bound.strategies} | {r.variable for r in bound.refusals} == set(
            bound.variables
        )
        for strategy in bound.strategies:
            strategy.input_regions(worker=1, workers=2)
            strategy.output_regions(worker=0, workers=2)
        assert isinstance(bound.tight, bool)
        if prod(max(1, extent) for extent in bound.extents.values()) <= SMALL and not special.opaques:
            random = np.random.default_rng(self.random.randrange(2**32))
            tensors = {name: random.integers(-3, 9, shape) for name, shape in shapes.items()}
            try:
                results = bound.interpret(tensors)
            except TofuError:
                self.counts["not interpreted"] += 1
                return
            self.counts["interpreted"] += 1
            assert tuple(result.shape for result in results) == bound.output_shapes

    def ranks(self, description: ast.Description) -> Mapping[str, int]:
        """Return the rank of every tensor as its uses say it, random if they leave it open."""
        found = {name: self.random.randint(0, 3) for name in description.tensor_names}
        for node in tdl.walk(description):
            if isinstance(node, ast.Element) and node.tensor in found:
                stars = sum(isinstance(index, ast.Star) for index in node.indices)
                count = len(node.indices)
                found[node.tensor] = count if not stars else max(found[node.tensor], count - stars)
        return found

    def attributes(self, description: ast.Description) -> dict[str, Any]:
        """Return a random value now and then; some have no default."""
        values = (0, 1, 2, -1, 0.5, True, (1, 2), (2,), 2**40)
        return {
            attribute.name: self.random.choice(values)
            for attribute in description.attributes
            if attribute.default is None or self.random.random() < 0.3
        }


def library_texts() -> Iterator[str]:
    """Yield the descriptions of the library that need nothing but their example."""
    for name in operators.names():
        try:
            text = str(operators.get(name))
        except OperatorError:
            continue
        if len(text) < 2000:
            yield text


def forget() -> None:
    """Empty the caches of the package, which keep every description analysed; load the grammar again."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tofu."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    for text in SEEDS:
        tdl.parse(text, callables=LIBRARY)


def _lengths(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    return {name: len(shape) for name, shape in shapes.items()}

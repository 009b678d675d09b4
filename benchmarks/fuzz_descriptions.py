"""Whatever the text, the outcome is a description or one of Tofu's errors, soon, and nothing is executed.

    python -m benchmarks.fuzz_descriptions --texts 1000000 --seed 0

Texts are written by the grammar, nest constructs of indices deeply, or are known descriptions damaged by
tokens or by bytes. An accepted text is printed and parsed again, and must give an equal tree. Of the
accepted texts every `--analyse-every`-th is bound to random shapes: its strategies, regions and refusals are
asked for, and its interpretation if it is small. A text that takes longer than `--limit` seconds of
processor time counts as a hang. An audit hook watches for execution, imports and files while a text is
parsed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from types import FrameType
from typing import Any

import numpy as np

from benchmarks.machine import described
from benchmarks.record import keep
from tests.tdl.random_texts import SEEDS, damaged_bytes, damaged_tokens, nested, written
from tofu import operators, tdl
from tofu.analyzer.bind.staged_bound import bind
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import OperatorError, TofuError
from tofu.tdl import ast

EXECUTION = frozenset({"exec", "compile", "import", "open", "os.system", "os.exec", "subprocess.Popen"})
SMALL = 300
"""Elements of an iteration space that is interpreted."""
SHOWN = 20
FORGET_EVERY = 10_000


class Hang(BaseException):
    """A text took longer than its limit; no `except Exception` may swallow it."""


class Watch:
    """Counts forbidden events of the interpreter while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.events: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.on and event in EXECUTION:
            self.events.append(f"{event} {arguments!r:.200}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on = False


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the parser and the analysis.")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--analyse-every", type=int, default=10)
    parser.add_argument("--limit", type=float, default=10.0, help="processor seconds for one text")
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    arguments = parser.parse_args()
    fuzz = Fuzz(Random(arguments.seed), arguments.analyse_every, arguments.limit)
    started = perf_counter()
    for number in range(arguments.texts):
        if number % FORGET_EVERY == 0:
            forget()
            print(f"{number:,} texts, {dict(fuzz.counts)}", file=sys.stderr, flush=True)
        fuzz.one()
    result = {
        **described(),
        "texts": arguments.texts,
        "seed": arguments.seed,
        "processor_seconds_per_text_limit": arguments.limit,
        **dict(sorted(fuzz.counts.items())),
        "executions": len(fuzz.watch.events),
        "slowest_parse_seconds": round(fuzz.slowest["parse"][0], 3),
        "slowest_parse": fuzz.slowest["parse"][1],
        "slowest_analysis_seconds": round(fuzz.slowest["analysis"][0], 3),
        "slowest_analysis": fuzz.slowest["analysis"][1],
        "seconds": round(perf_counter() - started, 1),
        "failures": fuzz.failures[:SHOWN],
    }
    print(keep(result, arguments.save))
    sys.exit(bool(fuzz.failures or fuzz.watch.events))


class Fuzz:
    """One run: random texts, what became of them, and the slowest."""

    def __init__(self, random: Random, analyse_every: int, limit: float) -> None:
        self.random = random
        self.analyse_every = analyse_every
        self.limit = limit
        self.corpus = (*SEEDS, *library_texts())
        self.counts: Counter[str] = Counter(crashes=0, hangs=0, accepted=0, refused=0, analysed=0)
        self.failures: list[dict[str, str]] = []
        self.slowest = {"parse": (0.0, ""), "analysis": (0.0, "")}
        self.watch = Watch()
        signal.signal(signal.SIGPROF, _alarm)

    def one(self) -> None:
        """Make one text and see what becomes of it."""
        kind = self.random.choices(("written", "tokens", "bytes", "nested"), (25, 35, 35, 5))[0]
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
        with self.guarded("parse", text), self.watch.watching():
            try:
                description = tdl.parse(text)
            except TofuError:
                self.counts["refused"] += 1
                return
            self.counts["accepted"] += 1
            printed = tdl.format(description)
            assert tdl.parse(printed) == description, printed
        if description is not None and (
            kind == "nested" or self.counts["accepted"] % self.analyse_every == 0
        ):
            with self.guarded("analysis", text):
                self.analyse(description)

    @contextmanager
    def guarded(self, phase: str, text: str) -> Iterator[None]:
        """Counts a crash or a hang inside, and keeps the slowest text."""
        started = process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit)
        try:
            yield
        except Hang:
            self.fail("hangs", text, f"{phase} took more than {self.limit} processor seconds")
        except Exception:
            self.fail("crashes", text, traceback.format_exc(limit=-3))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.slowest[phase] = max(self.slowest[phase], (process_time() - started, text))

    def fail(self, what: str, text: str, why: str) -> None:
        self.counts[what] += 1
        self.failures.append({"text": text, "why": why})
        if len(self.failures) <= SHOWN:
            print(f"{what}: {text!r}\n{why}", file=sys.stderr, flush=True)

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
    tdl.parse(SEEDS[0])


def _lengths(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    return {name: len(shape) for name, shape in shapes.items()}


def _alarm(number: int, frame: FrameType | None) -> None:
    raise Hang


if __name__ == "__main__":
    main()

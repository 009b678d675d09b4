"""The mutants of a file: one small fault in one function each, as mutmut makes them."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import libcst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, create_mutations, deep_replace

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, eq=False)
class Mutant:
    """One change to one function."""

    path: str
    """The file, relative to the repository's root."""

    function: str
    """The function's name in it, with that of its class."""

    body: frozenset[int]
    """The lines of the function's body."""

    number: int
    """The number of the change among those of the function, from 1."""

    lines: frozenset[int]
    """The lines that change."""

    module: libcst.Module
    """The syntax tree of the file."""

    mutation: Mutation
    """The node that changes, and its replacement."""

    @cached_property
    def key(self) -> str:
        """Names the mutant; stays the same while its function does."""
        nodes = (self.mutation.original_node, self.mutation.mutated_node)
        change = "\n".join(self.module.code_for_node(node) for node in nodes)
        return f"{self.path}:{self.function}:{self.number}:{hashlib.sha256(change.encode()).hexdigest()[:8]}"

    @cached_property
    def code(self) -> str:
        """The whole file, changed."""
        return deep_replace(self.module, self.mutation.original_node, self.mutation.mutated_node).code

    @property
    def change(self) -> str:
        """The lines that differ."""
        before, after = self.module.code.splitlines(), self.code.splitlines()
        return "\n".join(list(unified_diff(before, after, n=0, lineterm=""))[3:])

    def rank(self, seed: int) -> str:
        """Return a random number that follows from seed and mutant alone: the lowest make the sample."""
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()

    def install(self) -> None:
        """Give the function this mutant's code, wherever it was imported to."""
        module = importlib.import_module("tofu." + self.path.removesuffix(".py").replace("/", "."))
        mutated = dict(vars(module))
        exec(compile(self.code, self.path, "exec"), mutated)
        function, replacement = _function(vars(module), self.function), _function(mutated, self.function)
        function.__code__ = replacement.__code__
        function.__defaults__ = replacement.__defaults__
        function.__kwdefaults__ = replacement.__kwdefaults__


def _function(namespace: Mapping[str, Any], name: str) -> FunctionType:
    owner, _, method = name.rpartition(".")
    found = inspect.getattr_static(namespace[owner], method) if owner else namespace[method]
    return found.__func__ if isinstance(found, (classmethod, staticmethod)) else found


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield all that mutmut changes in the functions of one file; it leaves decorated ones alone."""
    name, source = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    module, mutations, _, _ = create_mutations(name, source)
    places = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    names = dict(_functions(module))
    numbers: dict[str, int] = defaultdict(int)
    for mutation in mutations:
        function = mutation.contained_by_top_level_function
        if function not in names:
            continue
        numbers[names[function]] += 1
        yield Mutant(
            name,
            names[function],
            _lines(places[function.body]),
            numbers[names[function]],
            _lines(places[mutation.original_node]),
            module,
            mutation,
        )


def _functions(module: libcst.Module) -> Iterator[tuple[libcst.CSTNode, str]]:
    for statement in module.body:
        if isinstance(statement, libcst.ClassDef):
            for inner in statement.body.body:
                if isinstance(inner, libcst.FunctionDef):
                    yield inner, f"{statement.name.value}.{inner.name.value}"
        elif isinstance(statement, libcst.FunctionDef):
            yield statement, statement.name.value


def _lines(place: Any) -> frozenset[int]:
    return frozenset(range(place.start.line, place.end.line + 1))

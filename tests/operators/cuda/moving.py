"""Random boxes that are assembled and reduced, with what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType

import numpy as np

from tofu import tdl
from tofu.operators.cuda import DATA_TYPES, data_type
from tofu.operators.cuda.launch.commands import Command, KernelLaunch
from tofu.operators.cuda.transfers.transfer_units import Unit, copy_unit, fill_unit, reduce_unit
from tofu.operators.cuda.transfers.transfers import Pair, fetch, fill, reduce
from tofu.tdl import ast

from .arrays import decode, encode
from .card import Array, Card, Memory, strided, view_of

TYPES = tuple(DATA_TYPES)
Place = tuple[slice | EllipsisType, ...]


def custom(text: str) -> ast.CustomReducer:
    """The reducer `own` that the lambda and identity define."""
    description = tdl.parse(f"def f(a):\n    own = Reducer({text})\n    return lambda: own(lambda i: a[i])")
    found = next(node.reducer for node in tdl.walk(description) if isinstance(node, ast.ReducerCall))
    assert isinstance(found, ast.CustomReducer)
    return found


COMPOUND = custom("lambda l, r: l + r + 0.25 * l * r, 0")
FARTHEST = custom("lambda l, r: where(abs(l) >= abs(r), l, r), 0")
REDUCERS: tuple[ast.AnyReducer, ...] = (*ast.Reducer, COMPOUND, FARTHEST)
SAMPLE: tuple[tuple[ast.AnyReducer, str], ...] = (
    (ast.Reducer.SUM, "float16"),
    (ast.Reducer.PROD, "float64"),
    (ast.Reducer.MAX, "bfloat16"),
    (ast.Reducer.MIN, "int64"),
    (COMPOUND, "float32"),
    (FARTHEST, "int32"),
)
"""Every type, every reducer."""


def units(chosen: Sequence[tuple[ast.AnyReducer, str]]) -> list[Unit]:
    """Return the units that move data, with these reductions."""
    return [copy_unit(), fill_unit(), *(reduce_unit(reducer, type) for reducer, type in chosen)]


def numbers(shape: Sequence[int], type: str, rng: np.random.Generator) -> Array:
    """Random elements, most of which a sum rounds; small integers."""
    if data_type(type).integer:
        return rng.integers(-9, 10, shape).astype(data_type(type).numpy)
    return encode(np.asarray(rng.normal(size=shape)), type)


def random_shape(rng: np.random.Generator, rank: int) -> tuple[int, ...]:
    """Up to a few thousand elements."""
    longest = (1, 3000, 60, 16, 9, 6, 4)[rank]
    shape = rng.integers(1, longest + 1, rank)
    if rank and rng.random() < 0.6:
        shape[rng.integers(rank)] = rng.choice([1, 8, 16, 32])
    return tuple(shape.tolist())


def cut(shape: Sequence[int], count: int, rng: np.random.Generator, grain: int = 1) -> list[Place]:
    """Up to `count` disjoint boxes that fill the shape, in random order; cut everywhere at whole grains."""
    found = [tuple((0, length) for length in shape)]
    for _ in range(20 * count):
        number = int(rng.integers(len(found)))
        box = found[number]
        axes = [axis for axis, (lower, upper) in enumerate(box) if upper - lower > grain]
        if len(found) == count or not axes:
            continue
        axis = int(rng.choice(axes))
        lower, upper = box[axis]
        at = lower + grain * int(rng.integers(1, -(-(upper - lower) // grain)))
        found[number] = (*box[:axis], (lower, at), *box[axis + 1 :])
        found.append((*box[:axis], (at, upper), *box[axis + 1 :]))
    rng.shuffle(found)
    return [(..., *(slice(*interval) for interval in box)) for box in found]


def source(values: Array, type: str, rng: np.random.Generator, align: int | None = None) -> Memory:
    """Elements as a worker may hold them; sometimes one value over a whole axis."""
    if values.ndim and rng.random() < 0.15:
        values = np.broadcast_to(values.take([0], int(rng.integers(values.ndim))), values.shape)
    if rng.random() < 0.4:
        return plain(values, type, rng, align)
    return strided(values, type, rng, align, repeated=True)


def plain(values: Array, type: str, rng: np.random.Generator, align: int | None) -> Memory:
    """Elements row-major and without gaps, at least at a multiple of their size unless `align` is less."""
    values = np.asarray(values)
    flat = strided(values.reshape(-1), type, rng, 16 if align is None else align, turned=False)
    array: Array = np.ndarray(values.shape, values.dtype, flat.array)
    return Memory(array, flat.bytes, view_of(array, type))


def writable(shape: Sequence[int], type: str, rng: np.random.Generator, align: int | None) -> Memory:
    """Memory for elements: with gaps and axes in random order, or row-major and without gaps."""
    place = strided if rng.random() < 0.5 else plain
    return place(numbers(shape, type, rng), type, rng, align)


@dataclass
class Seen:
    """Which ways were taken: a test holds that all are."""

    widths: set[int]
    ranks: set[int]
    copies: int = 0
    launches: int = 0

    def add(self, commands: Sequence[object]) -> None:
        for command in commands:
            if isinstance(command, KernelLaunch):
                self.launches += 1
                used = command.struct["cells"][0][command.struct["cells"][0]["count"] > 0]
                self.widths |= set(used["width"].tolist())
                self.ranks |= set(used["rank"].tolist())
            else:
                self.copies += 1


def check(
    card: Card, commands: Sequence[Command], target: Memory, write: Callable[[], None], what: str
) -> None:
    """Raise AssertionError unless commands leave the memory of the target as `write` does, in both widths."""
    before = target.bytes.copy()
    for wide in (False, True):
        target.bytes[:] = before
        card.run(commands, wide)
        found = target.bytes.copy()
        target.bytes[:] = before
        write()
        assert np.array_equal(found, target.bytes), what


def check_fetch(card: Card, rng: np.random.Generator, seen: Seen | None = None) -> None:
    """Raise AssertionError unless a random box is assembled as NumPy does, and nothing else is touched."""
    type, rank = str(rng.choice(TYPES)), int(rng.integers(0, 7))
    shape = random_shape(rng, rank)
    align = [1, 2, 4, None, None, 16][rng.integers(6)]
    target = writable(shape, type, rng, align)
    pieces, pairs, kept = cut(shape, int(rng.integers(1, 21)), rng), [], []
    if len(pieces) > 2 and rng.random() < 0.3:
        pieces.pop()
    for place in pieces:
        part = target.array[place]
        memory = source(numbers(part.shape, type, rng), type, rng, align)
        pairs.append((memory.view, view_of(part, type)))
        kept.append((part, memory))
    commands = fetch(pairs)
    if seen is not None:
        seen.add(commands)

    def write() -> None:
        for part, memory in kept:
            part[...] = memory.array

    check(card, commands, target, write, f"{type} {shape} in {len(pairs)} pieces")


def expected(reducer: ast.AnyReducer, type: str, terms: Sequence[Array]) -> Array:
    """Terms combined in their order in the wider type, rounded once."""
    entry = data_type(type)
    wide = np.dtype("float64" if type == "float64" else "float32")
    if entry.integer:
        wide = np.dtype("float64" if isinstance(reducer, ast.CustomReducer) else "int64")
    total, *others = (np.array(decode(term, type), wide) for term in terms)
    combine = tdl.combiner(reducer)
    for other in others:
        combine(total, other, total)
    return encode(total, type)


def random_terms(
    target: Array, type: str, count: int, rng: np.random.Generator, most: int = 4, grain: int = 0
) -> tuple[list[list[Pair]], list[Array], list[Memory]]:
    """Terms in separate pieces, the elements of each whole term, and the memory to keep.

    With a `grain` pieces lie without gaps at multiples of it.
    """
    terms, wholes, kept = [], [], []
    for _ in range(count):
        whole, pairs = np.empty_like(target), []
        for place in cut(target.shape, int(rng.integers(1, most + 1)), rng, max(grain, 1)):
            values = numbers(target[place].shape, type, rng)
            memory = plain(values, type, rng, grain * values.itemsize) if grain else source(values, type, rng)
            whole[place] = memory.array
            pairs.append((memory.view, view_of(target[place], type)))
            kept.append(memory)
        terms.append(pairs)
        wholes.append(whole)
    return terms, wholes, kept


def check_reduce(
    card: Card, reducer: ast.AnyReducer, type: str, rng: np.random.Generator, seen: Seen | None = None
) -> None:
    """Raise AssertionError unless random terms are combined to the bit, and nothing else is touched."""
    shape, grain = random_shape(rng, int(rng.integers(0, 7))), int(rng.choice([0, 0, 2, 4, 8]))
    if grain:
        shape = (*(length % 7 + 1 for length in shape[:3]), grain * int(rng.integers(1, 9)))
        target = plain(numbers(shape, type, rng), type, rng, 16)
    else:
        target = writable(shape, type, rng, None)
    terms, wholes, _kept = random_terms(target.array, type, int(rng.integers(2, 8)), rng, grain=grain)
    if rng.random() < 0.2:
        wholes[0], terms[0] = target.array.copy(), [(target.view, target.view)]
    commands = reduce(reducer, terms)
    if seen is not None:
        seen.add(commands)

    def write() -> None:
        target.array[...] = expected(reducer, type, wholes)

    check(card, commands, target, write, f"{reducer} of {len(terms)} terms, {type} {shape}")


def check_fill(card: Card, rng: np.random.Generator) -> None:
    """Raise AssertionError unless a random box is filled, and nothing else is touched."""
    type = str(rng.choice(TYPES))
    shape = random_shape(rng, int(rng.integers(0, 7)))
    target = writable(shape, type, rng, None)
    value = float(rng.choice([0, 1, -3, 7])) if data_type(type).integer else float(rng.normal())

    def write() -> None:
        target.array[...] = encode(np.asarray(value), type)

    check(card, fill(target.view, value), target, write, f"{type} {shape} set to {value}")


def generators(count: int) -> Iterator[np.random.Generator]:
    """One for each case, so each can be run again alone."""
    return (np.random.default_rng(seed) for seed in range(count))

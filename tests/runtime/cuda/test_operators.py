"""Operators by the commands of a machine, whatever computes them, and data moved there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from benchmarks.gpu.dry_machine import DryMachine
from tofu import tdl
from tofu.analyzer.indices.region import to_region
from tofu.operators import names
from tofu.operators.cuda.compute import compute
from tofu.operators.cuda.launch.commands import Command, KernelLaunch
from tofu.operators.cuda.transfers.transfers import fetch, reduce
from tofu.tdl import ast

from ...operators.cuda.arrays import Array, Guarded, guarded_call, held, random_box
from ...operators.cuda.comparison import agree
from ...operators.cuda.library import Case
from ...operators.cuda.moving import cut, expected, numbers, random_shape, source, writable
from .bench import Bench
from .guards import intact
from .slab import Slab

HOST = ("Convolution", "Deconvolution", "Embedding", "FullyConnected")
SAMPLE = (
    *(*HOST, "BatchNorm", "LRN", "Pooling", "SoftmaxOutput", "adam_update", "batch_dot"),
    *("softmax", "take", "topk"),
)
OWN = ("BatchNorm", "Embedding", "LRN", "Pooling", "softmax", "take", "topk")
"""Which no vendor's library computes."""

VENDOR_TIMES = 10
"""How much less precise products and convolutions may be, whose libraries transform what they sum up."""

BOXES = 3
RANDOM = {"host": 25, "cards": 300}


@dataclass(frozen=True)
class Trial:
    """A box of an operator, as commands, and the arrays that it is computed from and into."""

    title: str
    dtype: str
    guarded: Guarded
    commands: tuple[Command, ...]
    expected: Sequence[Array]

    def run(self, slab: Slab) -> None:
        """Raise AssertionError unless the commands compute what the description says, and nothing else."""
        self.guarded.reset()
        moved = slab.placed([placed.memory for placed in (*self.guarded.inputs, *self.guarded.outputs)])
        count = len(self.guarded.inputs)
        flags = slab.run(self.commands, moved[:count], moved[count:])
        assert not any(flags), f"{self.title}: indices from data are marked"
        assert self.guarded.intact(), f"{self.title}: memory outside of the outputs was written"
        vendor = any(not isinstance(command, KernelLaunch) for command in self.commands)
        for output, wanted in zip(self.guarded.call.outputs, self.expected, strict=True):
            agree(output, wanted, self.dtype, self.title, VENDOR_TIMES if vendor else 1)


def trials(case: Case, dtype: str, slab: Slab) -> Iterator[Trial]:
    """The whole box dense, then random boxes with strided views between guards."""
    bound, rng = case.bound, np.random.default_rng(5)
    types = case.types(dtype)
    known = held(case.tensors, types)
    for number in range(BOXES):
        box = random_box(bound, rng) if number else bound.full_box
        intervals = dict(zip(bound.variables, to_region(box), strict=True))
        wanted = tdl.interpret(bound.description, bound.extents, known, bound.shapes, box=intervals)
        guarded = guarded_call(bound, box, known, types, case.outputs(dtype), rng if number else None)
        moved = slab.placed([placed.memory for placed in (*guarded.inputs, *guarded.outputs)])
        views = [
            place.view(placed.view, dtype)
            for place, placed in zip(moved, (*guarded.inputs, *guarded.outputs), strict=True)
        ]
        inputs = dict(zip(guarded.call.inputs, views, strict=False))
        call = replace(guarded.call, inputs=inputs, outputs=tuple(views[len(inputs) :]))
        workspace = slab.workspace()
        commands = compute(call, workspace, lambda command: slab.machine.scratch_bytes(0, command))
        assert slab.fits(workspace), case.name
        yield Trial(f"{case.name}, {dtype}, {intervals}", dtype, guarded, commands, wanted)


def check(bench: Bench, cases: Sequence[Case], dtype: str) -> None:
    machine = bench.new_machine(1)
    slab = Slab(machine)
    listed = [trial for case in cases for trial in trials(case, dtype, slab)]
    machine.load(0, (command for trial in listed for command in trial.commands))
    failures = []
    for trial in listed:
        try:
            trial.run(slab)
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, f"{len(failures)} of {len(listed)}:\n" + "\n".join(failures[:5])
    assert intact(machine)
    machine.close()


def test_some_operators(host: Bench, cases: Callable[..., list[Case]]) -> None:
    check(host, cases(HOST), "float32")


@pytest.mark.slow
def test_every_operator_has_commands(cases: Callable[..., list[Case]]) -> None:
    slab = Slab(DryMachine(1))
    for case in cases(names()):
        assert all(trial.commands for trial in trials(case, "float32", slab)), case.name


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_some_operators_in_other_types(dtype: str, cards: Bench, cases: Callable[..., list[Case]]) -> None:
    check(cards, cases(SAMPLE), dtype)


@pytest.mark.gpu
def test_operators_of_own_kernels(cards: Bench, cases: Callable[..., list[Case]]) -> None:
    check(cards, cases(OWN), "float32")


@pytest.mark.gpu
def test_every_operator(cards: Bench, cases: Callable[..., list[Case]]) -> None:
    check(cards, cases(names()), "float32")


def test_boxes_are_assembled(bench: Bench) -> None:
    """Of random types and shapes, from random pieces: every byte as NumPy has it, and no other is written."""
    slab = Slab(bench.new_machine(1), 1 << 24, 0)
    for seed in range(RANDOM[bench.name]):
        rng = np.random.default_rng(seed)
        type, shape = (
            str(rng.choice(["float32", "float16", "int64"])),
            random_shape(rng, int(rng.integers(0, 7))),
        )
        target = writable(shape, type, rng, None)
        parts = [target.array[place] for place in cut(shape, int(rng.integers(1, 21)), rng)]
        pieces = [source(numbers(part.shape, type, rng), type, rng, None) for part in parts]
        *moved, result = slab.placed([*(piece.bytes for piece in pieces), target.bytes])
        commands = fetch(
            [
                (place.view(piece.array, type), result.view(part, type))
                for place, piece, part in zip(moved, pieces, parts, strict=True)
            ]
        )
        wanted = with_parts(target.bytes, parts, [piece.array for piece in pieces])
        slab.machine.load(0, commands)
        slab.run(commands, moved, [result])
        np.testing.assert_array_equal(target.bytes, wanted, err_msg=f"seed {seed}")
    assert intact(slab.machine)


def test_terms_are_summed(bench: Bench) -> None:
    """In their order, to the bit."""
    slab = Slab(bench.new_machine(1), 1 << 24, 0)
    for seed in range(RANDOM[bench.name]):
        rng = np.random.default_rng(seed)
        type = str(rng.choice(["float32", "float16"]))
        shape = random_shape(rng, int(rng.integers(0, 5)))
        target = writable(shape, type, rng, None)
        terms = [source(numbers(shape, type, rng), type, rng) for _ in range(int(rng.integers(2, 12)))]
        *moved, result = slab.placed([*(term.bytes for term in terms), target.bytes])
        whole = result.view(target.array, type)
        pairs = [[(place.view(term.array, type), whole)] for place, term in zip(moved, terms, strict=True)]
        commands = reduce(ast.Reducer.SUM, pairs)
        total = expected(ast.Reducer.SUM, type, [term.array for term in terms])
        wanted = with_parts(target.bytes, [target.array], [total])
        slab.machine.load(0, commands)
        slab.run(commands, moved, [result])
        np.testing.assert_array_equal(target.bytes, wanted, err_msg=f"seed {seed}")
    assert intact(slab.machine)


def with_parts(memory: Array, parts: Sequence[Array], values: Sequence[Array]) -> Array:
    """The bytes of memory if those parts of it held these values."""
    before = memory.copy()
    for part, value in zip(parts, values, strict=True):
        part[...] = value
    wanted = memory.copy()
    memory[...] = before
    return wanted

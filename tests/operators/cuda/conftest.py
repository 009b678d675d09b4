"""Generated kernels on the CPU: compiled with the host's compiler behind `shim.h`, called by ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tofu import tdl
from tofu.analyzer.affine import reads_elements
from tofu.analyzer.region import to_region
from tofu.operators import get
from tofu.operators.bound import BoundOperator
from tofu.operators.cuda import CudaKernel, Entry, data_type, generate, launch_of, pack, translation_unit
from tofu.operators.kernel import KernelCall
from tofu.operators.stage import Stage
from tofu.operators.staging import produced_shapes
from tofu.tdl import ast

HERE = Path(__file__).parent
Array = npt.NDArray[Any]
Shape = tuple[int, ...]
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 5e-5, "float64": 1e-11, "int32": 0, "int64": 0}


@dataclass(frozen=True, eq=False)
class Case:
    """One operator of a training graph, bound to the shapes of the library's example."""

    operator: str
    stage: Stage
    shapes: Mapping[str, Shape]

    @property
    def bound(self) -> BoundOperator:
        return self.stage.bind(self.shapes)

    def kernel(self, dtype: str) -> CudaKernel:
        description = self.stage.description
        return generate(
            description, dict.fromkeys(description.tensor_names, dtype), [dtype] * len(description.outputs)
        )


def library_cases(name: str) -> Iterator[Case]:
    """The stages of one operator of the library, of its adjoints and of its custom gradient.

    Without those that use opaque functions, which have no generated kernel.
    """
    operator = get(name)
    example = operator.example
    assert example is not None, f"{name} has no example"
    stages = operator.stages(example.attributes, example.shapes)
    known = produced_shapes(stages, example.shapes)
    for stage in stages:
        shapes = dict(known)
        for number, shape in enumerate(stage.bind(known).output_shapes):
            shapes[f"grad_{number}"] = shapes[f"output_{number}"] = shape
        if stage.description.opaques:
            continue
        yield Case(name, stage, known)
        for tensor in stage.inputs if operator.differentiable else ():
            yield from (Case(name, adjoint, shapes) for adjoint in stage.adjoint(tensor))
    gradient = operator.gradient(example.attributes, example.shapes)
    for stage in gradient.stages if gradient else ():
        shapes = known | {
            f"grad_{number}": known[f"output_{number}"] for number in range(len(stages[-1].produces))
        }
        if not stage.description.opaques:
            yield Case(name, stage, shapes)
        known = {**known, **zip_shapes(stage, shapes)}


def zip_shapes(stage: Stage, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    produced = zip(stage.produces, stage.bind(shapes).output_shapes, strict=True)
    return {name: shape for name, shape in produced if not name.startswith("output_")}


@pytest.fixture(scope="session")
def cases() -> Callable[[Sequence[str]], list[Case]]:
    """`cases(names)`: what operators of the library run in training, each description once."""

    def collect(names: Sequence[str]) -> list[Case]:
        found = (case for name in names for case in library_cases(name))
        return list({tdl.format(case.stage.description): case for case in found}.values())

    return collect


class Host:
    """Kernels compiled for the CPU; TOFU_SHIM_FLAGS adds options, such as a sanitizer's."""

    def __init__(self, kernels: Sequence[CudaKernel], folder: Path, *flags: str) -> None:
        compiler = shutil.which("g++")
        if compiler is None:
            pytest.skip("g++ is not installed: kernel bodies cannot run on the CPU")
        source, binary = folder / "kernels.cpp", folder / "kernels.so"
        source.write_text(host_source(kernels), encoding="utf-8")
        flags += tuple(os.environ.get("TOFU_SHIM_FLAGS", "").split())
        command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", "-ffp-contract=off", *flags]
        command += [
            "-include",
            str(HERE / "shim.h"),
            "-I",
            str(HERE / "host"),
            str(source),
            "-o",
            str(binary),
        ]
        bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        result = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr[:4000]
        self.library = ctypes.CDLL(str(binary))

    def run(
        self, kernel: CudaKernel, entry: Entry, call: KernelCall, narrow: bool, threads: int | None = None
    ) -> list[int]:
        """Run one entry; the flags of bad indices. `threads` replaces the number of threads of a block."""
        faults = np.zeros(max(len(kernel.parameters.gathers), 1), np.int32)
        struct = pack(kernel, call, faults.ctypes.data)
        launch = launch_of(entry, call.box, narrow)
        blocks = launch.blocks * launch.threads if threads and not entry.cooperative else launch.blocks
        function = getattr(self.library, f"run_{launch.function}")
        team = (1 if not entry.cooperative else threads) if threads else launch.threads
        function(ctypes.c_void_p(struct.ctypes.data), ctypes.c_uint(blocks), ctypes.c_uint(team))
        flags: list[int] = faults.tolist()
        return flags


def host_source(kernels: Sequence[CudaKernel]) -> str:
    """The kernels and, for each function, one that runs it for all blocks."""
    lines = [translation_unit(kernels)]
    for kernel in kernels:
        for name in kernel.functions:
            lines.append(
                f'extern "C" void run_{name}'
                f"(const tofu::{kernel.name}::Parameters* p, unsigned blocks, unsigned threads) "
                f"{{ shim_launch(blocks, threads, [&] {{ tofu::{kernel.name}::{name}(*p); }}); }}"
            )
    return "\n".join(lines)


@pytest.fixture
def host(tmp_path: Path) -> Callable[..., Host]:
    """`host(kernels, *flags)` compiles kernels for the CPU."""
    return lambda kernels, *flags: Host(kernels, tmp_path, *flags)


def random_tensors(case_bound: BoundOperator, rng: np.random.Generator) -> dict[str, Array]:
    """Multiples of 1/8, which every type holds exactly; whole numbers in range where they are indices."""
    tensors = {
        name: rng.integers(-24, 25, case_bound.shapes[name]) / 8
        for name in case_bound.description.tensor_names
    }
    for node in tdl.walk(case_bound.description):
        if isinstance(node, ast.Element):
            for axis, index in enumerate(node.indices):
                if reads_elements(index):
                    limit = case_bound.shapes[node.tensor][axis]
                    for inner in tdl.walk(index):
                        if isinstance(inner, ast.Element):
                            shape = case_bound.shapes[inner.tensor]
                            tensors[inner.tensor] = rng.integers(min(1, limit - 1), limit, shape).astype(
                                float
                            )
    return tensors


def encode(values: Array, dtype: str) -> Array:
    """Values as the bits that a tensor of this type holds."""
    if dtype != "bfloat16":
        return np.asarray(values).astype(data_type(dtype).numpy)
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def decode(bits: Array, dtype: str) -> Array:
    """The values that a tensor of this type holds."""
    if dtype != "bfloat16":
        return bits
    return (bits.astype(np.uint32) << 16).view(np.float32)


def make_call(
    bound: BoundOperator,
    box: Array,
    tensors: Mapping[str, Array],
    dtypes: Mapping[str, str],
    outputs: Sequence[str],
) -> KernelCall:
    """A call whose inputs and outputs are views into larger arrays; outputs start as nonsense."""
    inputs, regions = {}, {}
    for name, boxes in bound.input_regions(box[None]).items():
        if name in bound.reads:
            regions[name] = to_region(boxes[0])
            part = tensors[name][tuple(slice(*interval) for interval in regions[name])]
            padded = np.pad(encode(part, dtypes[name]), 1, constant_values=77)
            inputs[name] = padded[(..., *(slice(1, -1),) * part.ndim)]
    made = []
    for dtype, boxes in zip(outputs, bound.output_regions(box[None]), strict=True):
        shape = tuple(boxes[0, :, 1] - boxes[0, :, 0])
        made.append(
            np.full(tuple(n + 2 for n in shape), 99, data_type(dtype).numpy)[
                (..., *(slice(1, -1),) * len(shape))
            ]
        )
    intervals = dict(zip(bound.variables, to_region(box), strict=True))
    return KernelCall(bound, intervals, inputs, regions, tuple(made))


def random_box(bound: BoundOperator, rng: np.random.Generator) -> Array:
    """A box cut at random along any index variables."""
    box = bound.full_box.copy()
    for axis, extent in enumerate(bound.extents.values()):
        if extent > 1 and rng.random() < 0.6:
            first = int(rng.integers(0, extent))
            box[axis] = first, int(rng.integers(first + 1, extent + 1))
    return box


@pytest.fixture
def compare() -> Callable[..., None]:
    """Run every entry of a kernel on random boxes and compare with the interpreter."""

    def check(
        machine: Host,
        bound: BoundOperator,
        kernel: CudaKernel,
        dtypes: Mapping[str, str],
        outputs: Sequence[str],
        tensors: Mapping[str, Array] | None = None,
        boxes: int = 3,
    ) -> None:
        rng = np.random.default_rng(5)
        known = tensors if tensors is not None else random_tensors(bound, rng)
        for number in range(boxes):
            box = random_box(bound, rng) if number else bound.full_box
            call = make_call(bound, box, known, dtypes, outputs)
            expected = tdl.interpret(
                bound.description, bound.extents, known, bound.shapes, box=dict(call.box)
            )
            if not any(output.size for output in call.outputs):
                continue
            for group in kernel.groups:
                for entry in group:
                    for narrow, threads in ((True, 1), (False, 4), (True, 8))[
                        : 3 if entry.cooperative else 2
                    ]:
                        for output in call.outputs:
                            output[...] = 99
                        flags = machine.run(kernel, entry, call, narrow, threads)
                        assert not any(flags), f"{kernel.parameters.operator}: faults {flags}"
                        for position in entry.outputs:
                            _agree(call.outputs[position], expected[position], outputs[position], entry, call)

    return check


def _agree(output: Array, expected: Array, dtype: str, entry: Entry, call: KernelCall) -> None:
    edge = output.base
    assert edge is None or (edge == 99).sum() >= edge.size - output.size, "written outside of the box"
    with np.errstate(all="ignore"):
        wanted = decode(encode(expected, dtype), dtype).astype(float)
    found = decode(output, dtype).astype(float)
    np.testing.assert_allclose(
        found, wanted, TOLERANCE[dtype], TOLERANCE[dtype], err_msg=f"{entry.name} {dict(call.box)}"
    )

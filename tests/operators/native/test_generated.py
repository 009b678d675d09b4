"""Kernels in C compute what NumPy's do, on any box and view. NumPy runs operators that they do not take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.indices.region import Interval
from tofu.errors import ExecutionError
from tofu.operators.emit.loops import LoopSource
from tofu.operators.native import asked, generated
from tofu.operators.native.asked import VARIABLE, is_asked
from tofu.operators.native.generated import GENERATED
from tofu.operators.stages.stage import derived

from .cases import CASES, Framed, bound_case, called, wrong

BOXES: Mapping[str, tuple[dict[str, Interval], ...]] = {
    "chain": ({"i": (3, 4)}, {"i": (2, 9), "j": (5, 37)}),
    "broadcast": ({"c": (1, 4), "y": (0, 2)},),
    "softmax": ({"i": (2, 5), "j": (70, 77)},),
    "normal": ({"j": (3, 50), "k": (40, 77)},),
    "moments": ({"n": (1, 3), "y": (2, 7)}, {"c": (4, 5), "z": (3, 4)}),
    "columns": ({"j": (30, 295), "i": (1, 18)}, {"j": (7, 8), "k": (0, 3)}),
    "padded": ({"j": (0, 3)}, {"i": (2, 7), "j": (4, 11)}),
    "two": ({"i": (5, 8)},),
}


def ran(made: Framed) -> Framed:
    run = generated.generated(made.call)
    assert run is not None, "the call is not taken"
    assert made.call.calls == [GENERATED]
    run()
    return made


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_numpy(name: str, loose: bool) -> None:
    bound = bound_case(name)
    for box in ({}, *BOXES.get(name, ())):
        assert not wrong(ran(called(bound, box, "float32", loose=loose)))


@pytest.mark.usefixtures("native")
def test_boxes_that_lie_elsewhere_share_a_kernel() -> None:
    bound = bound_case("broadcast")
    generated._built.cache_clear()
    for start in range(4):
        box = {"n": (1, 3), "c": (start, start + 2), "y": (0, 4), "z": (2, 5)}
        assert not wrong(ran(called(bound, box, "float32", loose=False)))
    assert generated._built.cache_info().misses == 1


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("name", ["chain", "moments", "two"])
def test_float64_is_computed_in_float64(name: str) -> None:
    assert not wrong(ran(called(bound_case(name), {}, "float64", loose=False)))


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "value",
    [
        "x[i] // x[j]",
        "x[i] % x[j]",
        *(f"{name}(x[i])" for name in ("digamma", "erfc", "gamma", "gammaln")),
    ],
)
def test_special_values_are_those_of_the_interpreter(value: str, dtype: str) -> None:
    """Near and at poles, and of infinities."""
    numbers = [0.0, 1e-45, 2e-38, 1e-9, 0.5, 1.0, 2.5, 7.0, 36.5, 171.0, 1e4, 1e30, np.inf]
    near_poles = 1 + np.array([2.0, 5.0]) * np.finfo(dtype).eps
    x = np.concatenate([numbers, np.negative(numbers), near_poles, -near_poles, [np.nan]]).astype(dtype)
    bound = derived(tdl.parse(f"def f(x):\n    return lambda i, j=x.shape[0]: {value}")).bind({"x": x.shape})
    with np.errstate(all="ignore"):
        found, expected = bound.compute({"x": x})[0], bound.interpret({"x": x})[0].astype(dtype)
    tolerance = 4e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, expected, tolerance, tolerance)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("name", ["moments", "functions", "softmax"])
def test_bits_are_the_same_on_every_run_and_at_every_address(name: str) -> None:
    bound = bound_case(name)
    first = ran(called(bound, {}, "float32", loose=False)).call.outputs[0]
    for shift in (1, 3):
        call = called(bound, {}, "float32", loose=False).call
        moved = {key: _moved(array, shift) for key, array in call.inputs.items()}
        again = replace(call, inputs=moved, outputs=(_moved(call.outputs[0], shift),), calls=[])
        run = generated.generated(again)
        assert run is not None
        run()
        assert again.outputs[0].tobytes() == first.tobytes()


def _moved(array: np.ndarray, elements: int) -> np.ndarray:
    """Return a copy that begins some elements after the start of other memory."""
    memory = np.zeros(array.size + elements, array.dtype)
    moved = memory[elements:].reshape(array.shape)
    moved[...] = array
    return moved


@pytest.mark.usefixtures("native")
def test_an_update_writes_over_what_it_reads() -> None:
    """Both outputs of the step lie in the memory of the tensors that they replace."""
    bound = bound_case("two")
    separate = ran(called(bound, {}, "float32", loose=False)).call
    call = called(bound, {}, "float32", loose=False).call
    over = replace(call, outputs=(call.inputs["w"], call.inputs["m"]))
    run = generated.generated(over)
    assert run is not None
    run()
    for array, right in zip(over.outputs, separate.outputs, strict=True):
        assert array.tobytes() == right.tobytes()


MANY = " + ".join(["maximum(a[i, j], 1)"] * 50)
STACKED = "abcdefghim"
STACK = (
    f"def f({', '.join(STACKED)}):\n    return lambda p={len(STACKED)}, y, z: "
    + "".join(f"where(p < {n}, {name}[y, z], " for n, name in enumerate(STACKED[:-1], 1))
    + f"{STACKED[-1]}[y, z]"
    + ")" * (len(STACKED) - 1)
)

NOT_TAKEN = {
    "product of matrices": (
        "def f(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])",
        (64, 64),
    ),
    "window": ("def f(a):\n    return lambda i, j: Sum(lambda k=9: a[i, j + k])", (64, 64)),
    "index from data": ("def f(a, b):\n    return lambda i, j: a[i, b[i, j]]", (64, 64)),
    "prefix sums": (
        "def f(a):\n    return lambda i, j=a.shape[1]: Sum(lambda k: where(k <= j, a[i, k], 0))",
        (64, 64),
    ),
    "remainder": ("def f(a):\n    return lambda i, j=a.shape[1]: a[i, (j + 7) % a.shape[1]]", (80, 80)),
    "long expression": (
        f"def f(a):\n    return lambda i, j: {' * '.join([f'({MANY})'] * 5)}",
        (80, 80),
    ),
    "cases by position": (STACK, (8, 16)),
    "slow function": ("def f(a):\n    return lambda i, j: sin(a[i, j])", (80, 80)),
}


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("name", NOT_TAKEN)
def test_what_needs_an_algorithm_stays_with_numpy(name: str) -> None:
    text, shape = NOT_TAKEN[name]
    description = tdl.parse(text)
    bound = derived(description).bind(dict.fromkeys(description.tensor_names, shape))
    call = called(bound, {}, "float32", loose=False).call
    assert generated.generated(call) is None
    assert not call.calls


@pytest.mark.usefixtures("native")
def test_types_without_kernels_stay_with_numpy() -> None:
    bound = bound_case("chain")
    call = called(bound, {}, "float32", loose=False).call
    wide = {name: array.astype(np.longdouble) for name, array in call.inputs.items()}
    assert generated.generated(replace(call, inputs=wide)) is None


@pytest.mark.parametrize("value", ["", "0"])
def test_numpy_is_the_default(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert generated.generated(called(bound_case("chain"), {}, "float32", loose=False).call) is None


def test_a_value_that_means_nothing_is_refused() -> None:
    with pytest.raises(ExecutionError, match="TOFU_NATIVE is 'yes'; set it to 1 or 0"):
        is_asked({VARIABLE: "yes"})


@pytest.mark.usefixtures("compiler")
def test_asking_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (None, "0"):
        monkeypatch.delenv(VARIABLE, raising=False)
        if before is not None:
            monkeypatch.setenv(VARIABLE, before)
        with asked.asking():
            assert is_asked()
        assert not is_asked()


FAULTS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "an output past its end": (
        "chain",
        lambda text: text.replace("v_i < Index(p.box_i.upper)", "v_i <= p.box_i.upper"),
    ),
    "an output that begins late": (
        "chain",
        lambda text: text.replace("v_i = Index(p.box_i.lower)", "v_i = 1"),
    ),
    "a sum without its tail": (
        "softmax",
        lambda text: text.replace("lane = 0; at < upper;", "lane = 0; at < 0;"),
    ),
    "half of the lanes": ("softmax", lambda text: text.replace("half = lanes / 2", "half = lanes / 4")),
    "a region that starts at zero": (
        "padded",
        lambda text: text.replace("(Index(indices) - Index(lower[axis]))", "Index(indices)"),
    ),
    "a stride taken for one": (
        "transposed",
        lambda text: text.replace("p = *given;", "p = *given; p.in_x.stride[1] = 1;"),
    ),
    "another coefficient": ("two", lambda text: text.replace("0.9f * ", "0.8f * ", 1)),
    "a block without its last column": (
        "columns",
        lambda text: text.replace("first + 256;", "first + 255;"),
    ),
    "a row too few": (
        "columns",
        lambda text: text.replace("v_i < Index(p.box_i.upper)", "v_i + 1 < p.box_i.upper"),
    ),
    "a minimum that starts below": (
        "shortest",
        lambda text: text.replace("= real(tofu::infinity())", "= real(-9)"),
    ),
}


def forget() -> None:
    """Write sources again."""
    generated._built.cache_clear()
    generated._source.cache_clear()


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, plant = FAULTS[fault]
    right = generated.loop_source

    def planted(*given: object) -> LoopSource:
        source = right(*given)  # type: ignore[arg-type]
        changed = plant(source.text)
        assert changed != source.text, "the fault changes nothing"
        return replace(source, text=changed)

    monkeypatch.setattr(generated, "loop_source", planted)
    forget()
    try:
        found = wrong(
            ran(called(bound_case(name), dict(FAULT_BOX.get(name, {})), "float32", loose=name != "columns"))
        )
    finally:
        forget()
    assert found


FAULT_BOX: Mapping[str, dict[str, Interval]] = {"padded": {"j": (4, 11)}, "moments": {"n": (1, 3)}}

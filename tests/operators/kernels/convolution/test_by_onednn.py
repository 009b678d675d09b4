"""Convolutions by oneDNN compute what NumPy's kernels do, and read nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import ExecutionError
from tofu.operators import get
from tofu.operators.kernels import convolution as kernels
from tofu.operators.kernels.convolution import by_onednn, convolution
from tofu.operators.kernels.convolution.group_shares import GroupShare
from tofu.operators.kernels.convolution.library_form import Pass, library_form
from tofu.operators.kernels.convolution.patches import Windows
from tofu.operators.kernels.onednn.library import Library
from tofu.operators.kernels.workspace import Workspace
from tofu.operators.stages.stage import derived
from tofu.tdl import parse

from .test_convolution import CASES, convolution_text, tensors_of

pytestmark = pytest.mark.usefixtures("onednn")
PASSES = tuple(Pass)
NONSENSE = -77.0


def framed(array: Any) -> Any:
    """Return the same values as a view of a larger array."""
    return np.pad(array, 1, constant_values=np.nan)[(slice(1, -1),) * array.ndim]


def whole_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return float32 whose products and sums are exact, in any order."""
    return rng.integers(-3, 4, shape).astype(np.float32)


def random_share(rng: np.random.Generator) -> GroupShare:
    """Return a share with halos, gaps, dilation, and padding that is uneven or less than none."""
    dimensions = int(rng.integers(1, 4))
    sizes = [tuple(map(int, rng.integers(1, most + 1, dimensions))) for most in (7, 6, 3, 3, 2)]
    rows, places, taps, stride, dilate = sizes
    before = tuple(int(rng.integers(-2, tap * gap + 1)) for tap, gap in zip(taps, dilate, strict=True))
    images, channels, filters = (int(rng.integers(1, most)) for most in (5, 19, 19))
    arrays = [
        whole_numbers(rng, shape)
        for shape in ((images, channels, *rows), (filters, channels, *taps), (images, filters, *places))
    ]
    if rng.random() < 0.5:
        arrays = list(map(framed, arrays))
    return GroupShare(*arrays, Windows(places, taps, stride, dilate, before))


def target(share: GroupShare, computes: Pass) -> Any:
    return {Pass.FORWARD: share.output, Pass.DATA_GRADIENT: share.data}.get(computes, share.weight)


def by_numpy(share: GroupShare, computes: Pass) -> Any:
    """Return the result of NumPy's kernel in float64."""
    data, weight, output = (each.astype(np.float64) for each in (share.data, share.weight, share.output))
    wide = GroupShare(data, weight, output, share.windows)
    match computes:
        case Pass.FORWARD:
            run = convolution.forward(data, weight, output, share.windows, Workspace())
        case Pass.DATA_GRADIENT:
            run = convolution.data_gradient(output, weight, data, share.windows, Workspace())
        case Pass.WEIGHT_GRADIENT:
            run = convolution.weight_gradient(data, output, weight, share.windows, Workspace())
    run()
    return target(wide, computes)


@pytest.mark.parametrize("block_bytes", [by_onednn.BLOCK_BYTES, 1], ids=["one block", "a block an image"])
@pytest.mark.parametrize("computes", PASSES)
def test_random_shares(computes: Pass, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_onednn, "BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(len(computes))
    taken = 0
    for _ in range(60):
        share = random_share(rng)
        expected = by_numpy(share, computes)
        found = target(share, computes)
        found[...] = NONSENSE
        notes: list[str] = []
        run = by_onednn.convolution(computes, share, Workspace(), notes.append)
        if run is None:
            assert not notes
            continue
        taken += 1
        for _ in range(2):
            run()
            np.testing.assert_array_equal(found, expected, str(share.windows))
        (name,) = notes
        assert name.startswith("oneDNN ")
        assert "ref" not in name
    assert taken > 30


@pytest.mark.parametrize("computes", PASSES)
@pytest.mark.parametrize("taps", [by_onednn.MOST_TAPS, by_onednn.MOST_TAPS + 1, 33])
def test_filters_that_are_taller_than_images(taps: int, computes: Pass) -> None:
    rng = np.random.default_rng(taps)
    rows, before = 10, taps // 2
    places = rows + 2 * before - taps + 1
    shapes = ((2, 16, rows, 3), (16, 16, taps, 1), (2, 16, places, 3))
    arrays = (whole_numbers(rng, shape) for shape in shapes)
    share = GroupShare(*arrays, Windows((places, 3), (taps, 1), (1, 1), (1, 1), (before, 0)))
    expected, found = by_numpy(share, computes), target(share, computes)
    run = by_onednn.convolution(computes, share, Workspace(), list[str]().append)
    assert (run is None) == (computes is Pass.WEIGHT_GRADIENT and taps > by_onednn.MOST_TAPS)
    if run is not None:
        run()
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("which", ["forward", "data", "weight"])
def test_attached_kernels_on_boxes(which: str, case: Any, check_kernel: Any) -> None:
    space, kernel, stride, dilate, pad, groups = case
    stage = derived(parse(convolution_text(*case)))
    shapes: dict[str, Any] = {"data": (2, 2 * groups, *space), "weight": (2 * groups, 2, *kernel)}
    bound = stage.bind(shapes)
    geometry = (stride, dilate, pad, groups)
    if which == "forward":
        check_kernel(bound, by_onednn_only(Pass.FORWARD, geometry), tensors_of(shapes))
        return
    (adjoint,) = stage.adjoint(which)
    shapes["grad_0"] = bound.output_shapes[0]
    needed = {name: shapes[name] for name in adjoint.inputs}
    computes = Pass.DATA_GRADIENT if which == "data" else Pass.WEIGHT_GRADIENT
    check_kernel(adjoint.bind(needed), by_onednn_only(computes, geometry), tensors_of(needed))


@pytest.mark.parametrize("kernel", [(3,), (3, 2)])
@pytest.mark.parametrize("groups", [2, 3])
def test_one_filter_in_each_group(groups: int, kernel: tuple[int, ...], check_kernel: Any) -> None:
    """The channel within the group is summed over, and a worker may have a part of these channels."""
    attributes = {"kernel": kernel, "num_filter": groups, "num_group": groups, "no_bias": True}
    shapes = {"data": (2, 4 * groups, 5, 4)[: 2 + len(kernel)], "weight": (groups, 4, *kernel)}
    (stage,) = get("Convolution").stages(attributes, shapes)
    shapes["grad_0"] = stage.bind(shapes).output_shapes[0]
    (adjoint,) = stage.adjoint("data")
    bound = adjoint.bind({name: shapes[name] for name in adjoint.inputs})
    geometry = (*((size,) * len(kernel) for size in (1, 1, 0)), groups)
    check_kernel(bound, by_onednn_only(Pass.DATA_GRADIENT, geometry), tensors_of(bound.shapes))


def by_onednn_only(computes: Pass, geometry: Any) -> Any:
    """Return the attached kernel, which must call the library wherever there is something to sum."""
    kernel = {
        Pass.FORWARD: kernels.ConvolutionOutput,
        Pass.DATA_GRADIENT: kernels.ConvolutionDataGradient,
        Pass.WEIGHT_GRADIENT: kernels.ConvolutionWeightGradient,
    }[computes](*geometry)

    def prepare(call: Any) -> Any:
        run = kernel(call)
        met = [share for share in kernel.parts(call) if library_form(share) is not None]
        assert sum(each.startswith("oneDNN") for each in call.calls) == len(met)
        return run

    return prepare


def share_of(images: int = 2, channels: int = 16, size: int = 9) -> GroupShare:
    rng = np.random.default_rng(0)
    data, output = (whole_numbers(rng, (images, channels, size, size)) for _ in range(2))
    weight = whole_numbers(rng, (channels, channels, 3, 3))
    return GroupShare(data, weight, output, Windows((size, size), (3, 3), (1, 1), (1, 1), (1, 1)))


def prepared(share: GroupShare, computes: Pass, workspace: Workspace | None = None) -> Any:
    run = by_onednn.convolution(computes, share, workspace or Workspace(), lambda name: None)
    assert run is not None
    return run


def test_an_infinity_reaches_its_windows_alone() -> None:
    """An algorithm with fewer multiplications would spread it."""
    share = share_of()
    share.data[0, 3, 4, 5] = np.inf
    share.weight[...] = 1
    prepared(share, Pass.FORWARD)()
    reached = np.argwhere(~np.isfinite(share.output))
    assert reached[:, 0].tolist() == [0] * len(reached)
    assert (np.unique(reached[:, 2]).tolist(), np.unique(reached[:, 3]).tolist()) == ([3, 4, 5], [4, 5, 6])
    assert len(reached) == 16 * 9


@pytest.mark.parametrize("computes", PASSES)
def test_bits_are_the_same_on_every_run(computes: Pass) -> None:
    share = share_of(images=6)
    rng = np.random.default_rng(1)
    for array in (share.data, share.weight, share.output):
        array[...] = rng.standard_normal(array.shape)
    found = target(share, computes)
    first = prepared(share, computes)
    first()
    bits = found.tobytes()
    for run in (first, prepared(share, computes), prepared(share, computes, Workspace(1 << 22))):
        found[...] = np.nan
        run()
        assert found.tobytes() == bits


def test_scratch_comes_from_the_workspace() -> None:
    """All of it: in a workspace of exactly that size nothing else is written."""
    share = share_of()
    need = Workspace()
    prepared(share, Pass.FORWARD, need)()
    expected = share.output.copy()
    assert need.used_bytes > share.data.nbytes  # at least a copy of the images
    exact = Workspace(need.used_bytes)
    run = prepared(share, Pass.FORWARD, exact)
    assert exact.used_bytes == need.used_bytes
    exact.block[:] = 0xFF  # scratch is undefined when a kernel starts
    run()
    np.testing.assert_array_equal(share.output, expected)


def test_what_the_library_does_not_take_is_left_to_numpy() -> None:
    share = share_of()
    reversed_rows = replace(share, data=share.data[:, :, ::-1])
    doubles = replace(share, data=share.data.astype(np.float64))
    for each in (reversed_rows, doubles):
        assert by_onednn.convolution(Pass.FORWARD, each, Workspace(), lambda name: None) is None


def test_a_scratch_that_is_too_small_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_onednn._Prepared, "scratch_bytes", 0)
    rng = np.random.default_rng(0)
    shapes = ((4, 16, 8, 8), (16, 16, 3, 3), (4, 16, 4, 4))
    arrays = [whole_numbers(rng, shape) for shape in shapes]
    share = GroupShare(*arrays, Windows((4, 4), (3, 3), (2, 2), (1, 1), (1, 1)))
    with pytest.raises(ExecutionError, match=r"needs \d+ bytes of scratch .* but gets 0 bytes"):
        prepared(share, Pass.DATA_GRADIENT)


def refuted() -> list[str]:
    """Return the findings of a small convolution's audit that are refuted, gradients included."""
    shapes = {"data": (2, 2, 4), "weight": (2, 2, 3)}
    attributes = {"kernel": (3,), "num_filter": 2, "pad": (1,), "no_bias": True}
    report = tofu.audit(get("Convolution"), shapes=shapes, attributes=attributes, workers=(2,))
    return [str(finding) for finding in report.findings if finding.verdict.value == "refuted"]


def planted(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Plant a fault in the geometry that the library is given."""
    original = by_onednn.library_form

    def wrong(part: GroupShare) -> Any:
        form = original(part)
        if form is None:
            return None
        geometry = form.geometry
        return replace(form, geometry=replace(geometry, **{k: f(geometry) for k, f in changes.items()}))

    monkeypatch.setattr(by_onednn, "library_form", wrong)


def test_the_audit_refutes_a_wrong_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that are padded before the data are padded after them."""
    assert not refuted()
    planted(
        monkeypatch,
        before=lambda g: tuple(max(each - 1, 0) for each in g.before),
        after=lambda g: tuple(
            after + min(before, 1) for before, after in zip(g.before, g.after, strict=True)
        ),
    )
    assert refuted()


def test_the_audit_refutes_a_stale_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A primitive that is found by shapes alone serves a call with other strides."""
    original, known = by_onednn._prepared, {}

    def stale(library: Library, problem: Any, summed: bool) -> Any:
        key = (problem.computes, problem.data.shape, problem.weight.shape, problem.output.shape, summed)
        return known.setdefault(key, original(library, problem, summed))

    monkeypatch.setattr(by_onednn, "_prepared", stale)
    assert refuted()


def test_primitives_are_cached_by_all_they_depend_on(onednn: Library) -> None:
    share = share_of()
    form = library_form(share)
    assert form is not None
    problem = by_onednn._problem(Pass.FORWARD, form, 1)
    again = by_onednn._problem(Pass.FORWARD, form, 1)
    assert problem is not None
    assert again is not None
    assert by_onednn._prepared(onednn, problem, False) is by_onednn._prepared(onednn, again, False)
    other = library_form(replace(share, data=framed(share.data)))
    assert other is not None
    assert by_onednn._problem(Pass.FORWARD, other, 1) != problem


def test_a_library_operator_calls_it() -> None:
    attributes = {"kernel": (3, 3), "num_filter": 4, "pad": (1, 1), "no_bias": True}
    shapes = {"data": (2, 4, 6, 6), "weight": (4, 4, 3, 3)}
    (stage,) = get("Convolution").stages(attributes, shapes)
    bound = stage.bind(shapes)
    tensors = {name: np.asarray(value, np.float32) for name, value in tensors_of(shapes).items()}
    np.testing.assert_array_equal(bound.compute(tensors)[0], bound.interpret(tensors)[0])

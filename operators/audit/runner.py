"""Run kernels of both kinds on whole operators and on workers' parts, and watch what they write.

A kernel of Tofu's own contract takes a `KernelCall`, prepares, and returns what to run. Any other callable is
a function of local arrays, in the description's order, and returns the local output: the same operator on
smaller inputs, as in the paper's partition-n-reduce. It knows neither offsets nor whole extents.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from ...analyzer.audit.elements import Subject
from ...analyzer.audit.trial import parts
from ...analyzer.region import Boxes, Region, Shape, to_region
from ...analyzer.strategy import Strategy
from ...errors import TofuError
from ..bound import BoundOperator
from ..kernel import Array, Kernel, KernelCall, prepared, view_of

Poison = Callable[[Any], Any]
Poisons = Mapping[str, Poison]
Rebind = Callable[[Mapping[str, Shape]], Subject]

MARGIN = 2
GUARD = -987654.25


class KernelError(Exception):
    """A kernel raised, or returned something else than its outputs. Never leaves the audit."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker computes: a box, and the regions of the tensors and outputs that go with it."""

    box: Boxes
    regions: Mapping[str, Region]
    places: tuple[Region, ...]

    @classmethod
    def of(cls, strategy: Strategy, worker: int, workers: int) -> Share:
        """Return a worker's share under a strategy."""
        box = list(parts(strategy, workers))[worker]
        regions = strategy.input_regions(worker=worker, workers=workers)
        return cls(box, regions, strategy.output_regions(worker=worker, workers=workers))

    @classmethod
    def whole(cls, subject: Subject) -> Share:
        """Return the whole operator; every tensor is there from end to end."""
        regions = {name: tuple((0, extent) for extent in shape) for name, shape in subject.shapes.items()}
        places = tuple(tuple((0, extent) for extent in shape) for shape in subject.output_shapes)
        return cls(subject.full_box, regions, places)


@dataclass(frozen=True, slots=True)
class Result:
    """A kernel's outputs, and what it changed that is not its output."""

    outputs: list[Array]
    trespass: str = ""


class Runner(Protocol):
    """One kind of kernel. A `foreign` one is the user's: it computes what the description leaves open."""

    @property
    def foreign(self) -> bool: ...

    def run(
        self, subject: Subject, share: Share, tensors: Mapping[str, Array], around: Poisons | None = None
    ) -> Result:
        """Compute a share. `around` fills memory next to the inputs (zeros if None). Raises KernelError."""

    def everything(self, subject: Subject) -> Share:
        """Return the whole operator, with the inputs that the kernel is given for it."""

    def unfit(self, subject: Subject, strategy: Strategy, workers: int) -> str:
        """Return why the kernel cannot compute the parts of a strategy; empty if it can."""


@dataclass(frozen=True, slots=True)
class ContractRunner:
    """Runs a kernel of Tofu's contract; without one, whatever the operator itself is computed by."""

    kernel: Kernel | None = None

    @property
    def foreign(self) -> bool:
        """Whether there is one."""
        return self.kernel is not None

    def run(
        self, subject: Subject, share: Share, tensors: Mapping[str, Array], around: Poisons | None = None
    ) -> Result:
        """Prepare before the inputs are there, as in a plan, then run."""
        assert isinstance(subject, BoundOperator)
        regions = {name: share.regions[name] for name in subject.shapes if name in subject.reads}
        frames = {name: _frame(tensors[name], region, around, name) for name, region in regions.items()}
        outputs = [_guarded([upper - lower for lower, upper in place]) for place in share.places]
        box = dict(zip(subject.variables, to_region(share.box), strict=True))
        call = KernelCall(
            subject,
            box,
            {name: _inner(frame) for name, frame in frames.items()},
            regions,
            tuple(_inner(output) for output in outputs),
        )
        before = {name: frame.copy() for name, frame in frames.items()}
        for frame in frames.values():
            frame[...] = 0
        try:
            run = subject.prepare(call) if self.kernel is None else prepared(self.kernel, call)
            for name, frame in frames.items():
                frame[...] = before[name]
            with np.errstate(all="ignore"):
                run()
        except Exception as error:
            raise KernelError(f"raises {type(error).__name__}: {error}") from error
        return Result([_inner(output).copy() for output in outputs], _trespass(before, frames, outputs))

    def everything(self, subject: Subject) -> Share:
        """Return the full box, with the regions that the analysis derives for it."""
        regions = {
            name: to_region(boxes[0]) for name, boxes in subject.input_regions(subject.full_box[None]).items()
        }
        return replace(Share.whole(subject), regions=regions)

    def unfit(self, subject: Subject, strategy: Strategy, workers: int) -> str:
        """Return an empty reason: the kernel can compute any box."""
        return ""


@dataclass(frozen=True, slots=True)
class FunctionRunner:
    """Runs a function of local arrays. `rebind` gives the operator for local shapes."""

    function: Callable[..., Any]
    rebind: Rebind
    foreign: ClassVar[bool] = True

    def run(
        self, subject: Subject, share: Share, tensors: Mapping[str, Array], around: Poisons | None = None
    ) -> Result:
        """Call the function with views of local arrays."""
        frames = {name: _frame(tensors[name], share.regions[name], around, name) for name in subject.shapes}
        before = {name: frame.copy() for name, frame in frames.items()}
        try:
            with np.errstate(all="ignore"):
                returned = self.function(*(_inner(frame) for frame in frames.values()))
        except Exception as error:
            raise KernelError(f"raises {type(error).__name__}: {error}") from error
        outputs = list(returned) if isinstance(returned, tuple | list) else [returned]
        if len(outputs) != len(share.places):
            raise KernelError(f"returns {len(outputs)} outputs, but the description has {len(share.places)}")
        arrays = [np.array(output) for output in outputs]
        if any(array.dtype.kind not in "biuf" for array in arrays):
            raise KernelError(f"returns arrays of {', '.join(str(array.dtype) for array in arrays)}")
        return Result(arrays, _trespass(before, frames, []))

    def everything(self, subject: Subject) -> Share:
        """Return the full box, with whole tensors."""
        return Share.whole(subject)

    def unfit(self, subject: Subject, strategy: Strategy, workers: int) -> str:
        """Return a reason unless the local inputs are those of a smaller operator with the local outputs."""
        for worker in range(workers):
            share = Share.of(strategy, worker, workers)
            local = {name: _lengths(region) for name, region in share.regions.items()}
            wanted = tuple(_lengths(place) for place in share.places)
            listed = ", ".join(f"{name} {shape}" for name, shape in local.items())
            try:
                found = self.rebind(local).output_shapes
            except TofuError as error:
                return f"for worker {worker} of {workers} the operator does not take {listed}: {error}"
            if found != wanted:
                return (
                    f"worker {worker} of {workers} makes output {_shapes(wanted)} of {listed}, for which the "
                    f"operator alone gives {_shapes(found)}: a function cannot know where its part lies"
                )
        return ""


def takes_call(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel is of Tofu's contract: its one parameter is called `call`, or annotated
    KernelCall.
    """
    try:
        parameters = list(inspect.signature(kernel).parameters.values())
    except (TypeError, ValueError):
        return False
    if len(parameters) != 1:
        return False
    annotation = parameters[0].annotation
    return parameters[0].name == "call" or annotation in (KernelCall, "KernelCall")


def _frame(tensor: Array, region: Region, around: Poisons | None, name: str) -> Array:
    """Return a tensor's region inside a larger array."""
    part = view_of(tensor, [slice(*interval) for interval in region])
    frame = np.pad(part, MARGIN) if part.ndim else part.copy()
    if around is None or not part.ndim:
        return frame
    poisoned = cast(Array, around[name](frame))
    _inner(poisoned)[...] = part
    return poisoned


def _guarded(shape: list[int]) -> Array:
    """Return an output full of NaN inside a larger array of guard values."""
    frame = np.full([length + 2 * MARGIN for length in shape], GUARD)
    _inner(frame)[...] = np.nan
    return cast(Array, frame)


def _inner(frame: Array) -> Array:
    """Return the view without margins, of arrays without dimensions too."""
    return view_of(frame, [slice(MARGIN, -MARGIN)] * frame.ndim)


def _trespass(before: Mapping[str, Array], after: Mapping[str, Array], outputs: list[Array]) -> str:
    for name, frame in after.items():
        if not np.array_equal(before[name], frame, equal_nan=True):
            return f"changes its input {name}"
    for position, output in enumerate(outputs):
        margins = np.ones(output.shape, np.bool_)
        _inner(margins)[...] = False
        if not bool(np.asarray(output[margins] == GUARD).all()):
            return f"writes outside its output {position}"
    return ""


def _lengths(region: Region) -> Shape:
    return tuple(upper - lower for lower, upper in region)


def _shapes(shapes: tuple[Shape, ...]) -> str:
    return ", ".join(map(str, shapes))

"""Run kernels of both kinds on whole operators and on workers' parts, and watch what they write.


A kernel of Tofu's own contract takes a `KernelCall`, prepares, and returns what to run. Any other callable is
a function of local arrays, in the description's order, and returns the local output: the same operator on
smaller inputs, as in the paper's partition-n-reduce. It knows neither offsets nor whole extents.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, assert_never

import numpy as np

from ...analyzer.audit.elements import Subject
from ...analyzer.audit.trial import parts
from ...analyzer.indices.region import Boxes, Region, Shape, to_region
from ...analyzer.strategies.strategy import Strategy
from ...errors import TofuError
from ..kernels.kernel import Array, Kernel, KernelCall, prepared
from ..stages.bound_operator import BoundOperator
from .memory import FRAMED, Memory, Poison, Setting, output, placed, trespass

Poisons = Mapping[str, Poison]
Rebind = Callable[[Mapping[str, Shape]], Subject]


class KernelError(Exception):
    """A kernel raised, or returned something else than its outputs. Never leaves the audit."""


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one worker: a box, and the regions of the tensors and outputs that go with it."""

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
    calls: frozenset[str] = frozenset()
    """The code of libraries that it called."""


class Runner(Protocol):
    """One kind of kernel. A `foreign` one is the user's: it computes what the description leaves open."""

    @property
    def foreign(self) -> bool: ...

    def run(
        self,
        subject: Subject,
        share: Share,
        tensors: Mapping[str, Array],
        around: Poisons | None = None,
        setting: Setting = FRAMED,
    ) -> Result:
        """Compute a share; `around` fills frames next to the inputs (zeros without). Raises KernelError."""

    def differs(self, subject: Subject, share: Share, setting: Setting) -> bool:
        """Return whether a setting differs from that of separate arrays."""

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
        self,
        subject: Subject,
        share: Share,
        tensors: Mapping[str, Array],
        around: Poisons | None = None,
        setting: Setting = FRAMED,
    ) -> Result:
        """Prepare before the inputs are there, as in a plan, then run."""
        assert isinstance(subject, BoundOperator)
        regions = {name: share.regions[name] for name in subject.shapes if name in subject.reads}
        inputs = {
            name: placed(tensors[name], region, setting, None if around is None else around[name])
            for name, region in regions.items()
        }
        over = _overwritten(subject, share) if setting.memory is Memory.IN_PLACE else {}
        outputs = [
            inputs[over[number]] if number in over else output(_lengths(place), setting)
            for number, place in enumerate(share.places)
        ]
        box = dict(zip(subject.variables, to_region(share.box), strict=True))
        views = {name: each.view for name, each in inputs.items()}
        call = KernelCall(subject, box, views, regions, tuple(each.view for each in outputs))
        before = {name: each.memory.copy() for name, each in inputs.items()}
        for each in inputs.values():
            each.memory[...] = 0
        try:
            run = subject.prepare(call) if self.kernel is None else prepared(self.kernel, call)
            for name, each in inputs.items():
                each.memory[...] = before[name]
            with np.errstate(all="ignore"):
                run()
        except Exception as error:
            raise KernelError(f"raises {type(error).__name__}: {error}") from error
        kept = {name: array for name, array in before.items() if name not in over.values()}
        made = [each.view.copy() for each in outputs]
        return Result(made, trespass(kept, inputs, outputs), frozenset(call.calls))

    def differs(self, subject: Subject, share: Share, setting: Setting) -> bool:
        """Views of whole tensors differ from regions that are smaller, places that are overwritten always."""
        assert isinstance(subject, BoundOperator)
        match setting.memory:
            case Memory.SHARD:
                return any(_lengths(share.regions[name]) != subject.shapes[name] for name in subject.reads)
            case Memory.IN_PLACE:
                return bool(_overwritten(subject, share))
            case Memory.FRAMED | Memory.OWN:
                return True
            case _:
                assert_never(setting.memory)

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
        self,
        subject: Subject,
        share: Share,
        tensors: Mapping[str, Array],
        around: Poisons | None = None,
        setting: Setting = FRAMED,
    ) -> Result:
        """Called with views of local arrays."""
        inputs = {
            name: placed(
                tensors[name], share.regions[name], setting, None if around is None else around[name]
            )
            for name in subject.shapes
        }
        before = {name: each.memory.copy() for name, each in inputs.items()}
        try:
            with np.errstate(all="ignore"):
                returned = self.function(*(each.view for each in inputs.values()))
        except Exception as error:
            raise KernelError(f"raises {type(error).__name__}: {error}") from error
        outputs = list(returned) if isinstance(returned, tuple | list) else [returned]
        if len(outputs) != len(share.places):
            raise KernelError(f"returns {len(outputs)} outputs, but the description has {len(share.places)}")
        arrays = [np.array(output) for output in outputs]
        if any(array.dtype.kind not in "biuf" for array in arrays):
            raise KernelError(f"returns arrays of {', '.join(str(array.dtype) for array in arrays)}")
        return Result(arrays, trespass(before, inputs, []))

    def differs(self, subject: Subject, share: Share, setting: Setting) -> bool:
        """Return local arrays, in separate memory or in frames."""
        return setting.memory in (Memory.FRAMED, Memory.OWN)

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


def _overwritten(subject: BoundOperator, share: Share) -> dict[int, str]:
    """Outputs, and the inputs that they may take the memory of: those of one region, read in place alone."""
    free = sorted(subject.in_place)
    found = {}
    for number, place in enumerate(share.places):
        name = next((name for name in free if share.regions[name] == place), None)
        if name is not None:
            found[number] = name
            free.remove(name)
    return found


def _lengths(region: Region) -> Shape:
    return tuple(upper - lower for lower, upper in region)


def _shapes(shapes: tuple[Shape, ...]) -> str:
    return ", ".join(map(str, shapes))

"""The audit of a kernel against its description.

A: on the whole operator it gives what the interpreter gives.
B: it depends only on elements that the description reads: NaN elsewhere does not change a result. It
   writes only its outputs.
C: under every strategy, parts that workers compute make what it computes as a whole.

Each finds what the others cannot. A kernel that passes all three may be run in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from ...analyzer.audit.elements import Subject, elements_read
from ...analyzer.audit.finding import Check, Counterexample, Finding, Verdict
from ...analyzer.audit.reference import single_precision
from ...analyzer.audit.samples import Sample, poisons
from ...analyzer.audit.shrink import smallest
from ...analyzer.audit.strategies import OPAQUE, Case
from ...analyzer.audit.trial import combine, difference, element
from ...analyzer.indices.region import Boxes, to_region
from ...analyzer.strategies.strategy import Strategy
from ..kernels.kernel import Array
from .memory import (
    FRAMED,
    FRAMED_SINGLE,
    OWN_SINGLE,
    PART_SETTINGS,
    SINGLE,
    WHOLE_SETTINGS,
    Memory,
    Poison,
    Setting,
)
from .runner import KernelError, Result, Runner, Share

FINE, COARSE = 1e-9, 1e-3
"""Relative tolerances for kernels that compute in 64 and in fewer bits."""

Test = Callable[[Subject, Sample], Counterexample | None]


@dataclass(frozen=True, slots=True)
class KernelAudit:
    """A kernel and the operator that it is said to compute."""

    case: Case
    runner: Runner
    _known: dict[tuple[object, ...], Result] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def findings(self) -> Iterator[Finding]:
        """Yield A, B, and C for every strategy; only A for a kernel that does not run as a whole."""
        unknown = self.case.given.reference is None
        if unknown and not self.runner.foreign:
            yield from (self._not_applicable(check, OPAQUE) for check in _CLAIMS)
            return
        runs = self._runs()
        if unknown and runs:
            yield self._not_applicable(Check.WHOLE, OPAQUE)
        else:
            yield self._finding(Check.WHOLE, self.whole, "equals the interpreter")
        if not runs:
            for check in (Check.FOOTPRINT, Check.REPLAY):
                yield self._not_applicable(check, "the kernel does not give the outputs of the whole")
            return
        if self.case.subject.description.opaques:
            yield self._not_applicable(Check.FOOTPRINT, "opaque functions may refuse NaN")
        else:
            reason = "NaN and infinities elsewhere change nothing"
            yield self._finding(Check.FOOTPRINT, self.footprint, reason)
        for strategy in self.case.select(self.case.subject):
            yield self._replay(strategy)

    def whole(self, subject: Subject, given: Sample) -> Counterexample | None:
        """Find where the kernel on the whole operator differs from the interpreter, in any layout."""
        share = self.runner.everything(subject)
        settings = (s for s in WHOLE_SETTINGS if self.runner.differs(subject, share, s))
        found = (self._wrong(subject, given, setting) for setting in settings)
        return next((counterexample for counterexample in found if counterexample is not None), None)

    def _wrong(self, subject: Subject, given: Sample, setting: Setting) -> Counterexample | None:
        try:
            result = self._clean(subject, given, setting)
        except KernelError as error:
            return Counterexample(f"the kernel {error}", subject.shapes)
        if given.reference is None:
            shapes = tuple(output.shape for output in result.outputs)
            if shapes == subject.output_shapes:
                return None
            message = f"the kernel returns arrays of the shapes {shapes}, not {subject.output_shapes}"
            return Counterexample(message, subject.shapes)
        found = difference(result.outputs, given.reference, subject, relative=_relative(result, setting))
        if found is None or (setting.dtype == SINGLE and self._rounded(subject, given, result)):
            return None
        return _placed_in(found, setting)

    def _rounded(self, subject: Subject, given: Sample, result: Result) -> bool:
        """Tell whether the description gives these results in the kernel's type, as it may near a jump."""
        reference = single_precision(subject, given.tensors)
        if reference is None:
            return False
        return difference(result.outputs, reference, subject, relative=COARSE) is None

    def _clean(self, subject: Subject, given: Sample, setting: Setting = FRAMED) -> Result:
        """Run the kernel on the whole operator. Raises KernelError."""
        return self._run(subject, self.runner.everything(subject), given, setting)

    def _run(self, subject: Subject, share: Share, given: Sample, setting: Setting, *of: str | int) -> Result:
        """Run the kernel on a share `of` a strategy, once for the first shapes. Raises KernelError."""
        if given is not self.case.given:
            return self.runner.run(subject, share, given.tensors, setting=setting)
        key = (setting, *of)
        if key not in self._known:
            self._known[key] = self.runner.run(subject, share, given.tensors, setting=setting)
        return self._known[key]

    def footprint(self, subject: Subject, given: Sample) -> Counterexample | None:
        """Return a result that depends on elements outside of its footprint, or a write outside
        the outputs.
        """
        try:
            trespass = self._trespass(subject, given)
            settings = self._poisoned_settings(subject, given)
        except KernelError:
            return None
        if trespass is not None:
            return trespass
        found = (self._outside(subject, given, setting) for setting in settings)
        return next((counterexample for counterexample in found if counterexample is not None), None)

    def _poisoned_settings(self, subject: Subject, given: Sample) -> tuple[Setting, ...]:
        """Return the frames to poison: those of 32 bits, too, if the kernel calls other code for them."""
        same = self._clean(subject, given).calls == self._clean(subject, given, OWN_SINGLE).calls
        return (FRAMED,) if same else (FRAMED, FRAMED_SINGLE)

    def _outside(self, subject: Subject, given: Sample, setting: Setting) -> Counterexample | None:
        """Return a result that depends on elements outside of its footprint."""
        everything = self.runner.everything(subject)
        clean = self._clean(subject, given, setting)
        if clean.trespass:
            return _placed_in(Counterexample(f"the kernel {clean.trespass}", subject.shapes), setting)
        for box in _points(subject):
            found = self._poisoned(subject, given, everything, box, clean, setting)
            if found is not None:
                return _placed_in(found, setting)
        for strategy in self.case.select(subject):
            for workers in self.case.counts(strategy)[:1]:
                if self.runner.unfit(subject, strategy, workers):
                    continue
                for worker in range(workers):
                    found = self._part_poisoned(subject, given, strategy, worker, workers, setting)
                    if found is not None:
                        return _placed_in(found, setting)
        return None

    def _trespass(self, subject: Subject, given: Sample) -> Counterexample | None:
        """Return a write to an input or next to an output, however the arrays lie."""
        share = self.runner.everything(subject)
        for setting in WHOLE_SETTINGS:
            if not self.runner.differs(subject, share, setting):
                continue
            result = self._clean(subject, given, setting)
            if result.trespass:
                return _placed_in(Counterexample(f"the kernel {result.trespass}", subject.shapes), setting)
        return None

    def replay(
        self, subject: Subject, strategy: Strategy, workers: int, given: Sample
    ) -> Counterexample | None:
        """Return where parts that workers compute differ from what the kernel computes as a whole."""
        if self.runner.unfit(subject, strategy, workers):
            return None
        shares = [Share.of(strategy, worker, workers) for worker in range(workers)]
        settings = (
            s for s in PART_SETTINGS if any(self.runner.differs(subject, share, s) for share in shares)
        )
        found = (self._replayed(subject, strategy, shares, given, setting) for setting in settings)
        return next((counterexample for counterexample in found if counterexample is not None), None)

    def _replayed(
        self, subject: Subject, strategy: Strategy, shares: Sequence[Share], given: Sample, setting: Setting
    ) -> Counterexample | None:
        workers = len(shares)
        own = setting if setting == FRAMED else replace(setting, memory=Memory.OWN)
        try:
            clean = self._clean(subject, given, own)
        except KernelError:
            return None
        results: list[Array] = [np.full(shape, np.nan) for shape in subject.output_shapes]
        if [output.shape for output in clean.outputs] != [result.shape for result in results]:
            return None
        for worker, share in enumerate(shares):
            here = setting if self.runner.differs(subject, share, setting) else own
            try:
                of = strategy.kind, strategy.variable, workers, worker
                partial = self._run(subject, share, given, here, *of)
            except KernelError as error:
                return Counterexample(f"the kernel {error}", subject.shapes, workers, worker)
            for output, (part, place) in enumerate(zip(partial.outputs, share.places, strict=True)):
                if not combine(results[output], part, place, strategy, first=worker == 0):
                    shape = tuple(upper - lower for lower, upper in place)
                    message = f"the kernel returns output {output} of shape {part.shape}, not {shape}"
                    return Counterexample(message, subject.shapes, workers, worker)
        whole = tuple(np.asarray(output, np.float64) for output in clean.outputs)
        found = difference(results, whole, subject, workers, _relative(clean, setting))
        return None if found is None else _placed_in(found, setting)

    def _runs(self) -> bool:
        subject = self.case.subject
        try:
            result = self._clean(subject, self.case.given)
        except KernelError:
            return False
        return tuple(output.shape for output in result.outputs) == subject.output_shapes

    def _not_applicable(self, check: Check, reason: str, variable: str | None = None) -> Finding:
        return Finding(self.case.name, check, Verdict.NOT_APPLICABLE, reason, variable)

    def _finding(self, check: Check, test: Test, reason: str) -> Finding:
        self.case.report(self.case.name, check, None)
        found = test(self.case.subject, self.case.given)
        if found is None:
            return Finding(self.case.name, check, Verdict.TRIED, reason)
        found = smallest(
            self.case.subject, self.case.bind, lambda subject: test(subject, self.case.sample(subject)), found
        )
        return Finding(self.case.name, check, Verdict.REFUTED, _CLAIMS[check], counterexample=found)

    def _replay(self, strategy: Strategy) -> Finding:
        case, counts = self.case, self.case.counts(strategy)
        case.report(case.name, Check.REPLAY, strategy.variable)
        failure = case.failure(strategy, self.replay)
        if failure is not None:
            reason = _CLAIMS[Check.REPLAY]
            return Finding(case.name, Check.REPLAY, Verdict.REFUTED, reason, strategy.variable, {}, failure)
        unfit = {workers: self.runner.unfit(case.subject, strategy, workers) for workers in counts}
        fit = [workers for workers in counts if not unfit[workers]]
        if fit:
            reason = f"{', '.join(map(str, fit))} workers make the whole"
            return Finding(case.name, Check.REPLAY, Verdict.TRIED, reason, strategy.variable)
        reason = next(iter(unfit.values()), f"fewer values than {min(case.workers)} workers")
        return self._not_applicable(Check.REPLAY, reason, strategy.variable)

    def _poisoned(
        self,
        subject: Subject,
        given: Sample,
        everything: Share,
        box: Boxes,
        clean: Result,
        setting: Setting,
    ) -> Counterexample | None:
        """Return the whole operator again, with poison wherever one box of outputs reads nothing."""
        masks = elements_read(subject, box, given.tensors)
        places = tuple(to_region(boxes[0]) for boxes in subject.output_regions(box[None]))
        for poison in _rounds(subject, given):
            try:
                spoilt = self.runner.run(subject, everything, _spoilt(given, masks, poison), poison, setting)
            except KernelError as error:
                return Counterexample(f"with NaN outside of the footprint the kernel {error}", subject.shapes)
            for output, place in enumerate(places):
                here = tuple(slice(*interval) for interval in place)
                before, after = clean.outputs[output], spoilt.outputs[output]
                if before.shape == after.shape and not _same(before[here], after[here]):
                    at = tuple(lower for lower, _ in place)
                    where = element(f"output {output}", at)
                    return Counterexample(
                        f"{where} depends on {_culprit(masks)}, which the description does not read for it",
                        subject.shapes,
                        place=at,
                        expected=float(before[at]) if before.ndim == len(at) else None,
                        found=float(after[at]) if after.ndim == len(at) else None,
                    )
        return None

    def _part_poisoned(
        self,
        subject: Subject,
        given: Sample,
        strategy: Strategy,
        worker: int,
        workers: int,
        setting: Setting,
    ) -> Counterexample | None:
        """Return a worker's part, with poison around its regions and at elements in them that it does not
        read.
        """
        share = Share.of(strategy, worker, workers)
        masks = elements_read(subject, share.box, given.tensors)
        try:
            clean = self._run(
                subject, share, given, setting, strategy.kind, strategy.variable, workers, worker
            )
        except KernelError:
            return None
        if clean.trespass:
            return Counterexample(f"the kernel {clean.trespass}", subject.shapes, workers, worker)
        for poison in _rounds(subject, given):
            try:
                spoilt = self.runner.run(subject, share, _spoilt(given, masks, poison), poison, setting)
            except KernelError as error:
                message = f"with NaN outside of the footprint the kernel {error}"
                return Counterexample(message, subject.shapes, workers, worker)
            for output, (before, after) in enumerate(zip(clean.outputs, spoilt.outputs, strict=True)):
                if not _same(before, after):
                    message = (
                        f"its part of output {output} along '{strategy.variable}' depends on elements "
                        f"that its box does not read"
                    )
                    return Counterexample(message, subject.shapes, workers, worker)
        return None


_CLAIMS = {
    Check.WHOLE: "the kernel computes what the description says",
    Check.FOOTPRINT: "the kernel uses what the description reads and writes its outputs, nothing else",
    Check.REPLAY: "parts make what the kernel computes as a whole",
}


def _points(subject: Subject) -> Iterator[Boxes]:
    """Yield boxes of one output element: the first, the last, and two that lie on no diagonal."""
    outputs = {binder.name for output in subject.description.outputs for binder in output.variables}
    if any(not extent for extent in subject.extents.values()):
        return
    seen = set()
    for halves, step in ((0, 0), (2, 0), (1, 1), (2, 2)):
        box = subject.full_box.copy()
        for axis, name in enumerate(subject.variables):
            if name in outputs:
                extent = subject.extents[name]
                place = (halves * (extent - 1) // 2 + step * axis) % extent
                box[axis] = place, place + 1
        key = box.tobytes()
        if key not in seen:
            seen.add(key)
            yield box


def _rounds(subject: Subject, given: Sample) -> Iterator[Mapping[str, Poison]]:
    """Yield poisons for all tensors, a separate one for each, several times."""
    choices = {tensor: list(poisons(tensor, given)) for tensor in subject.shapes}
    for row in zip_longest(*choices.values()):
        yield {tensor: poison or choices[tensor][0] for tensor, poison in zip(choices, row, strict=True)}


def _spoilt(given: Sample, masks: Mapping[str, Array], poison: Mapping[str, Poison]) -> dict[str, Array]:
    """Return the tensors with poison outside of the masks."""
    return {name: np.where(masks[name], array, poison[name](array)) for name, array in given.tensors.items()}


def _culprit(masks: Mapping[str, Array]) -> str:
    """Return the tensors that have elements outside of the footprint, or memory next to them."""
    partly = [name for name, mask in masks.items() if not mask.all()]
    return f"elements of {' or '.join(partly)}" if partly else "memory next to its inputs"


def _same(before: Array, after: Array) -> bool:
    return before.shape == after.shape and bool(np.isclose(before, after, FINE, FINE, equal_nan=True).all())


def _placed_in(found: Counterexample, setting: Setting) -> Counterexample:
    """Return a counterexample that says how the arrays lay, if frames do not show it."""
    return found if setting == FRAMED else replace(found, message=f"{found.message} ({setting})")


def _relative(result: Result, setting: Setting) -> float:
    kinds = [setting.dtype, *(output.dtype for output in result.outputs)]
    return COARSE if any(kind.kind == "f" and kind.itemsize < 8 for kind in kinds) else FINE

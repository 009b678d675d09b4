"""Planted bugs: kernel sources with one thing wrong, and the descriptions that they are derived from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tofu import tdl
from tofu.operators.cuda import CudaKernel, generate
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.operators.stages.stage import Stage, derived

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Subject:
    """A description and the shapes that it is run with."""

    text: str
    shapes: Mapping[str, Shape]
    dtype: str = "float32"

    @property
    def stage(self) -> Stage:
        return derived(tdl.parse(self.text))

    @property
    def bound(self) -> BoundOperator:
        return self.stage.bind(self.shapes)

    @property
    def types(self) -> dict[str, str]:
        return dict.fromkeys(self.stage.inputs, self.dtype)

    @property
    def outputs(self) -> list[str]:
        return [self.dtype] * len(self.stage.produces)

    def kernel(self) -> CudaKernel:
        return generate(self.stage.description, self.types, self.outputs)


@dataclass(frozen=True)
class Bug:
    """In the source of a subject's kernel the first `old` (of those after `behind`) becomes `new`."""

    name: str
    subject: str
    old: str
    new: str
    behind: str = ""

    def corrupted(self, source: str) -> str:
        head, behind, tail = source.partition(self.behind) if self.behind else ("", "", source)
        assert self.old in tail, f"{self.name}: the source has no {self.old!r}"
        return head + behind + tail.replace(self.old, self.new, 1)


SUBJECTS: Mapping[str, Subject] = MappingProxyType(
    {
        "window": Subject(
            "def window(a, w):\n    return lambda b, x=5:"
            " Sum(lambda k: pad(a[b, 2 * x + k - 3], 1) * w[k]) / a.shape[1]",
            {"a": (3, 11), "w": (7,)},
        ),
        "precise": Subject("def precise(a):\n    return lambda i: exp(a[i]) / 3", {"a": (9,)}, "float64"),
        "ends": Subject(
            "def ends(a):\n    return (lambda i: Max(lambda j: a[i, j]) - Min(lambda j: a[i, j]),"
            " lambda: Prod(lambda i, j: a[i, j] / 2))",
            {"a": (4, 5)},
        ),
        "spread": Subject(
            "def spread(a):\n    return lambda i: Sum(lambda j: (a[i, j] - Sum(lambda k: a[i, k])) ** 2)",
            {"a": (4, 5)},
        ),
        "softmax": Subject(
            "def softmax(x):\n    return lambda i, j:"
            " exp(x[i, j]) / Sum(lambda k: exp(x[i, k] - Max(lambda m: x[i, m])))",
            {"x": (3, 7)},
        ),
        "take": Subject(
            "def take(d, w):\n    return lambda i, j: w[d[i], j] + pad(w[d[i] - 2, j // 2], j)",
            {"d": (6,), "w": (5, 4)},
        ),
        "floored": Subject(
            "def floored(a):\n    return lambda i, j: a[i, j] + (i - 3) // 2 * 10 + (j - 3) % 4",
            {"a": (6, 5)},
        ),
        "hoisted": Subject(
            "def hoisted(a, b, c):\n    return lambda i: c[i]"
            " + Sum(lambda k: a[k] * Sum(lambda m: b[i, m] * Sum(lambda n: b[i, n])))",
            {"a": (0,), "b": (3, 4), "c": (3,)},
        ),
        "nested": Subject(
            "def nested(a, b, c):\n    return lambda i: c[i]"
            " + Sum(lambda k: a[k] * Sum(lambda m: b[i, m] * Sum(lambda n: b[i, n])))",
            {"a": (5,), "b": (3, 4), "c": (3,)},
        ),
        "scaled": Subject(
            "def scaled(a, s):\n    return lambda i, j: a[i, j] * s[()] + s[()]", {"a": (4, 6), "s": ()}
        ),
    }
)

_READ_GUARD = "p.in_a.holds<Index>(v_b, x1)"
_POSITION = "Index(blockIdx.x) * Index(blockDim.x) + Index(threadIdx.x)"
_BY_BLOCKS = "_0_blocks("

BUGS = (
    # -- indices, guards and loops of an entry by threads
    Bug("index off by one", "window", "+ v_k) - 3", "+ v_k) - 2"),
    Bug("window stride forgotten", "window", "(2 * v_x)", "(1 * v_x)"),
    Bug("indices of an input exchanged", "ends", "at<Index>(v_i, v_j)", "at<Index>(v_j, v_i)"),
    Bug("read guard dropped", "window", _READ_GUARD, "true"),
    Bug("read guard inverted", "window", _READ_GUARD, f"!{_READ_GUARD}"),
    Bug("other padding", "window", ": real(1)", ": real(0)"),
    Bug("thread guard dropped", "window", "if (at >= tofu::count<Index>(p.box_b, p.box_x)) return;", ""),
    Bug("thread guard off by one", "window", "if (at >= ", "if (at > "),
    Bug("thread guard off by one, next to NaN", "floored", "if (at >= ", "if (at > "),
    Bug("inner sum of another element", "nested", "e3 * r5", "e3 + r5"),
    Bug(
        "thread guard of another box",
        "window",
        "count<Index>(p.box_b, p.box_x)",
        "count<Index>(p.box_b, p.box_b)",
    ),
    Bug("thread without its block", "window", _POSITION, "Index(threadIdx.x)"),
    Bug("block without its threads", "window", _POSITION, "Index(blockIdx.x) * Index(blockDim.x)"),
    Bug(
        "variables taken apart in the wrong order",
        "window",
        "Index v_x = tofu::take(at, p.box_x)",
        "Index v_x = tofu::take(at, p.box_b)",
    ),
    Bug("box offset of a variable forgotten", "window", "Index(p.box_b.lower) + at", "at"),
    Bug("box offset of an output forgotten", "window", "v_x - Index(p.box_x.lower)", "v_x"),
    Bug(
        "box offset of another variable", "window", "v_x - Index(p.box_x.lower)", "v_x - Index(p.box_b.lower)"
    ),
    Bug(
        "indices of an output exchanged",
        "floored",
        "v_i - Index(p.box_i.lower), v_j - Index(p.box_j.lower)",
        "v_j - Index(p.box_j.lower), v_i - Index(p.box_i.lower)",
    ),
    Bug("last iteration missing", "window", "v_k < Index(p.box_k.upper)", "v_k < Index(p.box_k.upper) - 1"),
    Bug("one iteration too many", "window", "v_k < Index(p.box_k.upper)", "v_k <= Index(p.box_k.upper)"),
    Bug("loop from zero", "window", "v_k = Index(p.box_k.lower)", "v_k = 0"),
    Bug(
        "extent of the box for the tensor's",
        "window",
        "real(p.extent_a_1)",
        "real(p.box_x.upper - p.box_x.lower)",
    ),
    Bug(
        "scalar output by every thread",
        "ends",
        "if (blockIdx.x > 0 || threadIdx.x > 0) return;",
        "p.out_1.set<Index>(real(3)); return;",
    ),
    Bug("another element hoisted", "softmax", "r4 = tofu::Max::combine(r4, e3)", "r4 = e1"),
    Bug("scalar tensor ignored", "scaled", "= p.in_s.at<Index>()", "= 1"),
    # -- where reductions start
    Bug("sum from one", "window", "real r5 = 0;", "real r5 = 1;"),
    Bug("product from zero", "ends", "real r2 = 1;", "real r2 = 0;"),
    Bug("maximum from zero", "ends", "r2 = -real(tofu::infinity())", "r2 = 0"),
    Bug("minimum from zero", "ends", "r4 = real(tofu::infinity())", "r4 = 0"),
    Bug("minimum for maximum", "ends", "tofu::Max::combine", "tofu::Min::combine"),
    # -- entries by blocks
    Bug("every thread reduces everything", "window", "next = Index(threadIdx.x)", "next = 0"),
    Bug("reduction strides too far", "window", "next += Index(blockDim.x)", "next += Index(blockDim.x) + 1"),
    Bug(
        "reduction strides once", "window", "next += Index(blockDim.x)", "next += tofu::count<Index>(p.box_k)"
    ),
    Bug(
        "reduction tail missing",
        "window",
        "< tofu::count<Index>(p.box_k);",
        "< tofu::count<Index>(p.box_k) - 1;",
    ),
    Bug("block's offset forgotten", "window", "v_k = Index(p.box_k.lower) + at", "v_k = at"),
    Bug("threads not combined", "window", "r5 = tofu::combine_block<tofu::Sum>(r5);", ""),
    Bug(
        "threads combined by another reducer",
        "window",
        "combine_block<tofu::Sum>",
        "combine_block<tofu::Max>",
    ),
    Bug("nobody stores", "window", "if (threadIdx.x == 0) {", "if (threadIdx.x == blockDim.x) {"),
    Bug("identity of a block's sum", "window", "real r5 = 0;", "real r5 = 1;", _BY_BLOCKS),
    Bug("identity of a block's maximum", "ends", "r2 = -real(tofu::infinity())", "r2 = 0", _BY_BLOCKS),
    Bug(
        "remaining outputs not spread",
        "softmax",
        "next < tofu::count<Index>(p.box_j)",
        "next < tofu::count<Index>(p.box_j) - 1",
    ),
    Bug(
        "barrier reached by some",
        "window",
        "r5 = tofu::combine_block",
        "if (threadIdx.x < 2) r5 = tofu::combine_block",
    ),
    # -- combine_block
    Bug(
        "no barrier behind the values",
        "window",
        "values[threadIdx.x] = value;\n    __syncthreads();",
        "values[threadIdx.x] = value;",
    ),
    Bug(
        "no barrier in the tree",
        "window",
        "values[threadIdx.x + half]);\n        __syncthreads();",
        "values[threadIdx.x + half]);",
    ),
    Bug("no barrier behind the result", "spread", "values[0];\n    __syncthreads();", "values[0];"),
    Bug("half of the tree", "window", "half = blockDim.x / 2", "half = blockDim.x / 4"),
    Bug("tree reads its own value", "window", "values[threadIdx.x + half]", "values[threadIdx.x]"),
    # -- tensors of the prelude
    Bug(
        "region's offset forgotten", "window", "(Index(indices) - Index(lower[axis])) * ", "Index(indices) * "
    ),
    Bug("input stride forgotten", "window", " * Index(stride[axis]), ++axis", ", ++axis"),
    Bug(
        "strides in another order",
        "window",
        " * Index(stride[axis]), ++axis",
        " * Index(stride[sizeof...(indices) - 1 - axis]), ++axis",
    ),
    Bug("lower guard forgotten", "window", "index >= Index(lower[axis]) && ", ""),
    Bug("upper guard off by one", "window", "< Index(length[axis])", "<= Index(length[axis])"),
    Bug(
        "guard of the first axis only",
        "window",
        "holds_axis<Index>(axis++, indices) && ...",
        "holds_axis<Index>(axis, indices) || ...",
    ),
    Bug(
        "output stride forgotten",
        "window",
        "Index(indices) * Index(stride[axis++])",
        "Index(indices) * Index(1 + 0 * axis++)",
    ),
    Bug("remainder of another length", "window", "position % length", "position % (length + 1)"),
    Bug("position not divided", "window", "position /= length;", ""),
    Bug(
        "interval's offset forgotten",
        "window",
        "Index(interval.lower) + position % length",
        "position % length",
    ),
    Bug(
        "length of the box by its end",
        "window",
        "(Index(1) * ... * (Index(intervals.upper) - Index(intervals.lower)))",
        "(Index(1) * ... * Index(intervals.upper))",
    ),
    # -- arithmetic
    Bug("quotient towards zero", "floored", "? quotient - 1 : quotient", "? quotient : quotient"),
    Bug("remainder of C", "floored", "? remainder + b : remainder", "? remainder : remainder"),
    Bug("single precision for double", "precise", "using real = double;", "using real = float;"),
    Bug("single precision in one place", "precise", "exp(", "expf(", "_0_threads("),
    # -- indices from data
    Bug("gather ignores its index", "take", "in_w.at<Index>(x2, v_j)", "in_w.at<Index>(v_i, v_j)"),
    Bug("gather without padding", "take", "const bool held7 = ", "const bool held7 = true || "),
    Bug("flag on every access", "take", "if (!p.in_w.holds_axis", "if (p.in_w.holds_axis"),
    # -- loops that may be empty
    Bug("read under an empty loop", "hoisted", "if (Index(p.box_k.lower) < Index(p.box_k.upper)) {", "{"),
)


def variant(kernel: CudaKernel, source: str, number: int) -> tuple[CudaKernel, str]:
    """The kernel and its source under other names, so that many share one translation unit."""
    space = f"bug{number}"
    name = kernel.name.replace("tofu", space)
    groups = tuple(
        tuple(replace(entry, name=entry.name.replace("tofu", space)) for entry in group)
        for group in kernel.groups
    )
    alias = f"namespace tofu {{ namespace {name} = {space}::{name}; }}"
    return replace(kernel, name=name, groups=groups), f"{source.replace('tofu', space)}\n{alias}"

"""Products of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from ..kernel import Array, Run
from ..strided import Strided
from .forms import Form, described, form_of
from .library import Library, Unimplemented, loaded
from .primitive import RESULT, SOURCE, WEIGHT, Primitive, execution, memory, primitive

GENERAL = "gemm:jit"
"""The library's general product. For plain matrices it is faster than the one that the library would choose
first. It packs matrices in memory of its own, as BLAS libraries do.
"""

LEAST_OPERATIONS = 1 << 21
"""NumPy computes smaller products: calling the library would take too much of their time."""

NO_SCRATCH: Array = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class LibraryProduct:
    """A product `[*batch, row, column]` of matrices that lie in certain forms, as a step of a kernel."""

    made: Primitive
    """The primitive. It takes no scratch."""

    @property
    def implementation(self) -> str:
        """Return the name of the code that computes it."""
        return f"oneDNN {self.made.implementation}"

    def bind(self, left: Array, right: Array, out: Array) -> Run:
        """Return the function that computes `out` from the factors, which lie in the forms."""
        places = {SOURCE: left, WEIGHT: right, RESULT: out}
        objects = {
            role: memory(self.made.library, self.made.form(role), array) for role, array in places.items()
        }
        return execution(self.made, objects, NO_SCRATCH)


def product(left: Strided, right: Strided, out: Strided) -> LibraryProduct | None:
    """Return the product of matrices that lie like these; None if NumPy is to compute it.

    With AVX2 the library's products take as long as NumPy's, so NumPy computes them.
    """
    library = loaded()
    if library is None or not library.has_wide_vectors:
        return None
    if 2 * prod(out.shape) * left.shape[-1] < LEAST_OPERATIONS:
        return None
    if not left.shape[:-2] == right.shape[:-2] == out.shape[:-2]:
        return None
    first, second, third = map(form_of, (left, right, out))
    if first is None or second is None or third is None:
        return None
    made = _primitive(library, first, second, third)
    return None if made is None or made.scratch_bytes else LibraryProduct(made)


@lru_cache(maxsize=4096)
def _primitive(library: Library, left: Form, right: Form, out: Form) -> Primitive | None:
    """Return the primitive; None if the library has no fast code."""
    first, second, third = (described(library, form) for form in (left, right, out))
    arguments = (library.engine, first, second, None, third, library.attributes)
    try:
        with library.one_thread():
            return primitive(library, "dnnl_matmul_primitive_desc_create", *arguments, begins=GENERAL)
    except Unimplemented:
        return None

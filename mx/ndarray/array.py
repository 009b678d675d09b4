"""The array: a NumPy array under MXNet's names, with MXNet's habits where they differ from NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DataError, OperatorError
from ...operators.library import registry
from ...runtime.context import Context, cpu
from .imperative import Array, computed

Operand = Any


class NDArray:
    """An array `[...]` of numbers that shares its memory with `numpy_array`.

    Slices along the first dimension are views; a single element is an array of shape (1,); comparisons
    give 0 and 1; arithmetic between arrays of equal shape, or with numbers. `asnumpy` copies.
    """

    __slots__ = ("numpy_array",)
    __array_ufunc__ = None  # NumPy leaves arithmetic to the methods here
    __hash__ = object.__hash__

    def __init__(self, numpy_array: Array) -> None:
        self.numpy_array = numpy_array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numpy_array.shape

    @property
    def dtype(self) -> type[Any]:
        """A NumPy type such as `np.float32`."""
        return self.numpy_array.dtype.type

    @property
    def size(self) -> int:
        return self.numpy_array.size

    @property
    def ndim(self) -> int:
        return self.numpy_array.ndim

    @property
    def context(self) -> Context:
        return cpu(0)

    ctx = context

    @property
    def stype(self) -> str:
        return "default"

    @property
    def T(self) -> NDArray:
        return NDArray(self.numpy_array.T)

    def asnumpy(self) -> Array:
        """Return a NumPy array with a copy of the elements."""
        return self.numpy_array.copy()

    def asscalar(self) -> Any:
        """Return the only element. Raises DataError if there are several."""
        if self.size != 1:
            raise DataError(f"an array of shape {self.shape} is not a single number; index one element")
        return self.numpy_array.reshape(())[()]

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy the elements into another array of the same shape, or into a new one."""
        if isinstance(other, Context):
            return self.copy()
        other[:] = self
        return other

    def copy(self) -> NDArray:
        return NDArray(self.numpy_array.copy())

    def as_in_context(self, context: Context) -> NDArray:
        """Return the array itself: all workers share the machine's memory."""
        return self

    def astype(self, dtype: npt.DTypeLike) -> NDArray:
        return NDArray(self.numpy_array.astype(dtype))

    def reshape(self, *shape: Any, **keywords: Any) -> NDArray:
        """Return the elements under another shape, as a view; codes 0, -1, -2, -3 and -4 as in Reshape."""
        codes = keywords.pop("shape", shape)
        if len(codes) == 1 and isinstance(codes[0], tuple | list):
            codes = codes[0]
        reshape = registry.get("Reshape")
        attributes = reshape.attributes({"shape": tuple(codes), **keywords})
        target = reshape.infer(attributes, {"data": self.shape})["output_0"]
        assert target is not None
        return NDArray(self.numpy_array.reshape([extent or 0 for extent in target]))

    def wait_to_read(self) -> None:
        """Nothing to wait for: results are there when a call returns."""

    def __len__(self) -> int:
        return len(self.numpy_array)

    def __iter__(self) -> Iterator[NDArray]:
        return (self[index] for index in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.numpy_array, dtype) if copy else np.asarray(self.numpy_array, dtype)

    def __getitem__(self, key: Any) -> NDArray:
        found = self.numpy_array[_plain(key)]
        return NDArray(found if isinstance(found, np.ndarray) and found.ndim else np.reshape(found, (1,)))

    def __setitem__(self, key: Any, value: Any) -> None:
        source = np.asarray(value)
        target = self.numpy_array[_plain(key)]
        try:
            fits = np.broadcast_shapes(target.shape, source.shape) == target.shape
        except ValueError:
            fits = False
        if not fits and source.size != 1:
            raise DataError(
                f"an array of shape {source.shape} cannot be assigned to one of {target.shape}; give both "
                "one shape, or assign a single number"
            )
        self.numpy_array[_plain(key)] = source if fits else source.reshape(())

    def __repr__(self) -> str:
        extents = "x".join(map(str, self.shape))
        return f"\n{self.numpy_array}\n<NDArray {extents} @{self.context}>"

    def __bool__(self) -> bool:
        return bool(self.asscalar())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Operators as methods: `a.sum(axis=1)` is `mx.nd.sum(a, axis=1)`."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            called = function(name)
        except OperatorError as error:
            raise AttributeError(f"an array has no {name!r}: {error}") from None
        return lambda *arguments, **attributes: called(self, *arguments, **attributes)

    def __reduce__(self) -> tuple[Any, ...]:
        return (NDArray, (self.numpy_array,))

    def __add__(self, other: Operand) -> NDArray:
        return self._combine(np.add, self, other)

    def __radd__(self, other: Operand) -> NDArray:
        return self._combine(np.add, other, self)

    def __sub__(self, other: Operand) -> NDArray:
        return self._combine(np.subtract, self, other)

    def __rsub__(self, other: Operand) -> NDArray:
        return self._combine(np.subtract, other, self)

    def __mul__(self, other: Operand) -> NDArray:
        return self._combine(np.multiply, self, other)

    def __rmul__(self, other: Operand) -> NDArray:
        return self._combine(np.multiply, other, self)

    def __truediv__(self, other: Operand) -> NDArray:
        return self._combine(np.divide, self, other)

    def __rtruediv__(self, other: Operand) -> NDArray:
        return self._combine(np.divide, other, self)

    def __mod__(self, other: Operand) -> NDArray:
        return self._combine(_remainder, self, other)

    def __rmod__(self, other: Operand) -> NDArray:
        return self._combine(_remainder, other, self)

    def __pow__(self, other: Operand) -> NDArray:
        return self._combine(_power, self, other)

    def __rpow__(self, other: Operand) -> NDArray:
        return self._combine(_power, other, self)

    def __neg__(self) -> NDArray:
        return NDArray(-self.numpy_array)

    def __abs__(self) -> NDArray:
        return NDArray(np.abs(self.numpy_array))

    def __iadd__(self, other: Operand) -> NDArray:
        return self._into(self + other)

    def __isub__(self, other: Operand) -> NDArray:
        return self._into(self - other)

    def __imul__(self, other: Operand) -> NDArray:
        return self._into(self * other)

    def __itruediv__(self, other: Operand) -> NDArray:
        return self._into(self / other)

    def __imod__(self, other: Operand) -> NDArray:
        return self._into(self % other)

    def __eq__(self, other: object) -> Any:
        return NotImplemented if other is None else self._combine(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if other is None else self._combine(np.not_equal, self, other)

    def __lt__(self, other: Operand) -> NDArray:
        return self._combine(np.less, self, other)

    def __le__(self, other: Operand) -> NDArray:
        return self._combine(np.less_equal, self, other)

    def __gt__(self, other: Operand) -> NDArray:
        return self._combine(np.greater, self, other)

    def __ge__(self, other: Operand) -> NDArray:
        return self._combine(np.greater_equal, self, other)

    def _combine(self, function: Callable[[Array, Array], Array], left: Operand, right: Operand) -> NDArray:
        """Element by element, in this array's type."""
        try:
            found = function(np.asarray(left), np.asarray(right))
        except ValueError:
            shapes = f"{np.shape(left)} and {np.shape(right)}"
            raise DataError(
                f"arrays of shapes {shapes} cannot be combined element by element; give extents that are "
                "equal or 1"
            ) from None
        return NDArray(np.asarray(found).astype(self.dtype, copy=False))

    def _into(self, value: NDArray) -> NDArray:
        self[:] = value
        return self


def _remainder(left: Array, right: Array) -> Array:
    """Return remainders with the sign of the divisor; those by zero are zero, as in MXNet."""
    zero = right == 0
    return np.where(zero, 0, np.mod(left, np.where(zero, 1, right)))


def _power(left: Array, right: Array) -> Array:
    """Return powers, fractions for integers to a negative power, which NumPy refuses."""
    fractions = right.dtype.kind == "i" and (right < 0).any()
    found: Array = np.power(left, right.astype(np.float64) if fractions else right)
    return found


def _plain(key: Any) -> Any:
    """Return an index as NumPy has it."""
    if isinstance(key, tuple):
        return tuple(_plain(part) for part in key)
    return key.numpy_array.astype(np.int64) if isinstance(key, NDArray) else key


def as_array(value: npt.ArrayLike | NDArray) -> Array:
    """Return the NumPy array behind a value, shared if it is one."""
    return value.numpy_array if isinstance(value, NDArray) else np.asarray(value)


Result = NDArray | list[NDArray]


@cache
def function(called: str) -> Callable[..., Result]:
    """Return the operator of this name as a function on arrays. Raises OperatorError if it is unknown."""
    operator = registry.get(called)

    def call(*inputs: Any, out: NDArray | None = None, name: str | None = None, **keywords: Any) -> Result:
        plain = {key: _numpy(value) for key, value in keywords.items()}
        produced = [NDArray(array) for array in computed(operator, [*map(_numpy, inputs)], plain)]
        if out is not None:
            out[:] = produced[0]
            return out
        return produced[0] if len(produced) == 1 else produced

    call.__name__ = call.__qualname__ = called
    return call


def waitall() -> None:
    """Nothing to wait for: results are there when a call returns."""


def _numpy(value: Any) -> Any:
    return value.numpy_array if isinstance(value, NDArray) else value

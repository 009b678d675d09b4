"""The helpers that MXNet's tests import from `mxnet.test_utils`, as strict as those of their own version."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
from scipy import stats

import tofu.mx as mx

from .absent import AbsentName
from .tolerances import Tolerances

Arrays = dict[str, Any]


def default_context() -> Any:
    return mx.current_context()


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(_numbers(one), _numbers(other)))


def same_array(one: Any, other: Any) -> bool:
    """Return whether a change of one array is seen in the other one."""
    one[:] += 1
    if not same(one, other):
        one[:] -= 1
        return False
    one[:] -= 1
    return same(one, other)


def np_reduce(dat: Any, axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> Any:
    """Reduce one dimension after the other."""
    axes = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    for dimension in sorted(axes, reverse=True):
        reduced = numpy_reduce_func(dat, axis=dimension)
        dat = np.expand_dims(reduced, dimension) if keepdims else reduced
    return dat


def random_sample(population: Sequence[Any], count: int) -> list[Any]:
    return [population[place] for place in np.random.permutation(len(population))[:count]]


def rand_shape_nd(rank: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    return tuple(np.random.randint(0 if allow_zero_size else 1, dim + 1, size=rank).tolist())


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    return tuple(np.random.randint(0 if allow_zero_size else 1, np.array([dim0, dim1]) + 1).tolist())


def rand_ndarray(shape: tuple[int, ...], stype: str = "default", dtype: Any = None) -> Any:
    """Return random numbers. Raises AbsentName for sparse arrays."""
    if stype != "default":
        raise AbsentName(f"storage type {stype}")
    return mx.nd.array(np.random.randn(*shape), dtype=dtype or np.float32)


def assert_exception(function: Callable[..., Any], expected: type, *args: Any, **kwargs: Any) -> None:
    try:
        function(*args, **kwargs)
    except expected:
        return
    raise AssertionError(f"{expected.__name__} was not raised")


def retry(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a test fail only if it fails `count` times."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def repeated(*args: Any, **kwargs: Any) -> None:
            for _ in range(count - 1):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    continue
            return test(*args, **kwargs)

        return repeated

    return decorate


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Set variables of the environment, by name and value or as a mapping; None removes one."""
    values = args[0] if len(args) == 1 else {args[0]: args[1]}
    with mock.patch.dict(os.environ):
        for name, value in values.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = str(value)
        yield


def set_env_var(name: str, value: str, default: str = "") -> str:
    """Set a variable of the environment and return what it was."""
    before = os.environ.get(name, default)
    os.environ[name] = value
    return before


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()):
        yield


def gen_buckets_probs_with_ppf(ppf: Callable[[float], float], count: int) -> tuple[list[Any], list[float]]:
    """Return intervals of equal probability, and that probability for each."""
    ends = [ppf(place / count) for place in range(count + 1)]
    return list(itertools.pairwise(ends)), [1 / count] * count


def verify_generator(
    generator: Callable[[int], Any],
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Raise AssertionError if too few of several chi-square tests say that numbers are distributed so."""
    found = []
    for _ in range(nrepeat):
        numbers = np.asarray(_numbers(generator(nsamples)))
        if isinstance(buckets[0], (list, tuple)):
            counts = [np.count_nonzero((low <= numbers) & (numbers < high)) for low, high in buckets]
        else:
            counts = [np.count_nonzero(numbers == value) for value in buckets]
        expected = nsamples * np.asarray(probs, float)
        statistic = float(np.sum((np.asarray(counts) - expected) ** 2 / expected))
        found.append(float(stats.chi2.sf(statistic, len(counts) - 1)))
    if sum(probability > alpha for probability in found) < nrepeat * success_rate:
        raise AssertionError(f"the chi-square tests give {found}")
    return found


class Comparisons:
    """The helpers whose defaults depend on the version of the tests."""

    def __init__(self, tolerances: Tolerances) -> None:
        self._tolerances = tolerances

    def default_rtols(self) -> dict[Any, float]:
        return {np.dtype(name): value for name, value in self._tolerances.relative.items()}

    def default_numeric_eps(self) -> dict[Any, float]:
        return {np.dtype(name): value for name, value in self._tolerances.steps.items()}

    def almost_equal(
        self, a: Any, b: Any, rtol: Any = None, atol: Any = None, equal_nan: bool = False
    ) -> bool:
        one, other = _numbers(a), _numbers(b)
        relative, absolute = self._tolerances.between(one, other, rtol, atol)
        return bool(np.allclose(one, other, relative, absolute, equal_nan))

    def assert_almost_equal(
        self,
        a: Any,
        b: Any,
        rtol: Any = None,
        atol: Any = None,
        names: Sequence[str] = ("a", "b"),
        equal_nan: bool = False,
        use_broadcast: bool = True,
    ) -> None:
        one, other = np.asarray(_numbers(a)), np.asarray(_numbers(b))
        if not use_broadcast and one.shape != other.shape:
            raise AssertionError(f"{names[0]} has shape {one.shape}, but {names[1]} {other.shape}")
        if not self.almost_equal(one, other, rtol, atol, equal_nan):
            apart = float(np.max(np.abs(one.astype(float) - other.astype(float)), initial=0))
            raise AssertionError(f"{names[0]} and {names[1]} differ by up to {apart:.3g}")

    def assert_allclose(
        self, a: Any, b: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True
    ) -> None:
        self.assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)

    def almost_equal_ignore_nan(self, a: Any, b: Any, rtol: Any = None, atol: Any = None) -> bool:
        return self.almost_equal(*_without_nan(a, b), rtol, atol)

    def assert_almost_equal_ignore_nan(
        self, a: Any, b: Any, rtol: Any = None, atol: Any = None, names: Sequence[str] = ("a", "b")
    ) -> None:
        self.assert_almost_equal(*_without_nan(a, b), rtol, atol, names)

    def check_symbolic_forward(
        self,
        sym: Any,
        location: Any,
        expected: Any,
        rtol: Any = None,
        atol: Any = None,
        aux_states: Any = None,
        ctx: Any = None,
        equal_nan: bool = False,
        dtype: Any = np.float32,
    ) -> Any:
        """Raise AssertionError if outputs are not those expected."""
        arguments = _arrays(sym.list_arguments(), location, dtype)
        states = _arrays(sym.list_auxiliary_states(), aux_states, dtype)
        gradients = {name: mx.nd.zeros(array.shape, dtype=array.dtype) for name, array in arguments.items()}
        executor = sym.bind(
            ctx or default_context(), args=arguments, args_grad=gradients, aux_states=states or None
        )
        executor.forward(is_train=False)
        named = _by_name(sym.list_outputs(), expected)
        for name, output in zip(sym.list_outputs(), executor.outputs, strict=True):
            if name in named:
                self.assert_almost_equal(
                    named[name], output, _first(rtol, self._tolerances.forward), atol, equal_nan=equal_nan
                )
        return executor.outputs

    def check_symbolic_backward(
        self,
        sym: Any,
        location: Any,
        out_grads: Any,
        expected: Any,
        rtol: Any = None,
        atol: Any = None,
        aux_states: Any = None,
        grad_req: Any = "write",
        ctx: Any = None,
        equal_nan: bool = False,
        dtype: Any = np.float32,
    ) -> Arrays:
        """Raise AssertionError if gradients are not those expected, and written as `grad_req` asks."""
        arguments = _arrays(sym.list_arguments(), location, dtype)
        states = _arrays(sym.list_auxiliary_states(), aux_states, dtype)
        wanted = _by_name(sym.list_arguments(), expected)
        before = {name: np.random.normal(size=np.shape(_numbers(array))) for name, array in wanted.items()}
        gradients = _arrays(list(before), before, np.float32 if dtype == "asnumpy" else dtype)
        requests = _requests(sym, grad_req)
        executor = sym.bind(
            ctx or default_context(),
            args=arguments,
            args_grad=gradients,
            grad_req=requests,
            aux_states=states or None,
        )
        executor.forward(is_train=True)
        heads = None if out_grads is None else _by_name(sym.list_outputs(), out_grads)
        if heads is None or isinstance(out_grads, Mapping):
            executor.backward(heads)
        else:
            executor.backward([_array(head, dtype) for head in heads.values()])
        for name, array in wanted.items():
            self._written(
                name,
                requests[name],
                array,
                before[name],
                gradients[name],
                _first(rtol, self._tolerances.backward),
                atol,
                equal_nan,
            )
        return gradients

    def check_numeric_gradient(
        self,
        sym: Any,
        location: Any,
        aux_states: Any = None,
        numeric_eps: float | None = None,
        rtol: Any = None,
        atol: Any = None,
        grad_nodes: Any = None,
        use_forward_train: bool = True,
        ctx: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        """Raise AssertionError if gradients of a random projection are not its finite differences."""
        arguments = _arrays(sym.list_arguments(), location, dtype)
        states = _arrays(sym.list_auxiliary_states(), aux_states, dtype)
        shapes = {name: array.shape for name, array in arguments.items()}
        learned = sym.list_arguments() if grad_nodes is None else list(grad_nodes)
        requests = dict(grad_nodes) if isinstance(grad_nodes, Mapping) else dict.fromkeys(learned, "write")
        weights = np.random.rand(*sym.infer_shape(**shapes)[1][0]) + 0.1
        projected = mx.sym.MakeLoss(sym * mx.sym.Variable("__random_proj"))
        given = {**arguments, "__random_proj": mx.nd.array(weights, dtype=dtype)}
        before = {name: np.random.normal(0, 0.01, size=shapes[name]) for name in learned}
        executor = projected.bind(
            ctx or default_context(),
            args=given,
            args_grad=_arrays(learned, before, dtype),
            grad_req=requests,
            aux_states=states or None,
        )
        executor.forward(is_train=True)
        executor.backward()
        found = {name: executor.grad_dict[name] for name in learned}
        found = {name: None if array is None else array.asnumpy().copy() for name, array in found.items()}
        eps = _first(numeric_eps, self._tolerances.steps[np.dtype(dtype).name])
        for name in learned:
            numeric = _differences(executor, name, eps, states, use_forward_train)
            got = before[name] if found[name] is None else found[name]
            self._written(
                name,
                requests[name],
                numeric,
                before[name],
                got,
                _first(rtol, self._tolerances.gradient),
                atol,
                False,
            )

    def check_consistency(
        self,
        sym: Any,
        ctx_list: Sequence[Mapping[str, Any]],
        scale: float = 1.0,
        grad_req: Any = "write",
        rtol: Any = 1e-3,
        atol: Any = 1e-3,
    ) -> None:
        """Raise AssertionError if a symbol, or one of several, computes something else elsewhere."""
        symbols = list(sym) if isinstance(sym, Sequence) else [sym] * len(ctx_list)
        first = symbols[0]
        for symbol in symbols[1:]:
            assert symbol.list_arguments() == first.list_arguments()
            assert symbol.list_outputs() == first.list_outputs()
        executors = [
            symbol.simple_bind(grad_req=grad_req, **context)
            for symbol, context in zip(symbols, ctx_list, strict=True)
        ]
        values = {
            name: np.random.normal(size=array.shape, scale=scale)
            for name, array in executors[0].arg_dict.items()
        }
        rounds: list[list[Any]] = []
        for executor in executors:
            for name, value in values.items():
                executor.arg_dict[name][:] = value
            executor.forward(is_train=False)
            found = [output.asnumpy().copy() for output in executor.outputs]
            if grad_req != "null":
                executor.forward(is_train=True)
                found += [output.asnumpy().copy() for output in executor.outputs]
                executor.backward([mx.nd.array(output) for output in found[: len(executor.outputs)]])
                found += [array.asnumpy() for array in executor.grad_arrays if array is not None]
            rounds.append(found)
        for found in rounds[1:]:
            for one, other in zip(found, rounds[0], strict=True):
                self.assert_almost_equal(one, other, rtol, atol)

    def _written(
        self,
        name: str,
        request: str,
        expected: Any,
        before: Any,
        found: Any,
        rtol: Any,
        atol: Any,
        equal_nan: bool,
    ) -> None:
        """Compare a gradient with what its request leaves in its array."""
        gradient, start = _numbers(found), before.astype(_numbers(found).dtype)
        match request:
            case "write":
                pair = expected, gradient
            case "add":
                pair = expected, gradient - start
            case "null":
                pair = start, gradient
            case _:
                raise ValueError(f"grad_req {request!r} is unknown")
        self.assert_almost_equal(
            *pair, rtol, atol, (f"expected gradient of {name}", "the one found"), equal_nan
        )


def as_module(tolerances: Tolerances) -> ModuleType:
    """Return the module `mxnet.test_utils` with one version's defaults."""
    module = ModuleType("mxnet.test_utils")
    comparisons = Comparisons(tolerances)
    for source in (globals(), {name: getattr(comparisons, name) for name in dir(comparisons)}):
        for name, value in source.items():
            if callable(value) and not name.startswith("_") and name not in _INTERNAL:
                setattr(module, name, value)
    module.__dict__.update({name: importlib.import_module(name) for name in _MODULES}, mx=mx, np=np)
    return module


_MODULES = ("json", "logging", "numbers", "os", "sys", "time", "traceback")
"""Modules that tests take from `mxnet.test_utils`."""
_INTERNAL = frozenset({"Any", "Callable", "Iterator", "Mapping", "ModuleType", "Sequence", "Tolerances"})


def _numbers(array: Any) -> Any:
    return array.asnumpy() if isinstance(array, mx.nd.NDArray) else np.asarray(array)


def _array(array: Any, dtype: Any) -> Any:
    if not isinstance(array, np.ndarray):
        return array
    return mx.nd.array(array, dtype=array.dtype if isinstance(dtype, str) else dtype)


def _arrays(names: Sequence[str], given: Any, dtype: Any) -> Arrays:
    return {name: _array(array, dtype) for name, array in _by_name(names, given or {}).items()}


def _by_name(names: Sequence[str], given: Any) -> Arrays:
    return dict(given) if isinstance(given, Mapping) else dict(zip(names, given, strict=False))


def _requests(sym: Any, grad_req: Any) -> dict[str, str]:
    if isinstance(grad_req, str):
        return dict.fromkeys(sym.list_arguments(), grad_req)
    return _by_name(sym.list_arguments(), grad_req)


def _first(given: Any, default: Any) -> Any:
    return default if given is None else given


def _without_nan(a: Any, b: Any) -> tuple[Any, Any]:
    one, other = np.array(_numbers(a)), np.array(_numbers(b))
    unknown = np.isnan(one) | np.isnan(other)
    return np.where(unknown, 0, one), np.where(unknown, 0, other)


def _differences(executor: Any, name: str, eps: float, states: Arrays, training: bool) -> Any:
    """Return the slope of the sum of the outputs in each element of an argument."""
    array = executor.arg_dict[name]
    values = array.asnumpy().copy()
    slopes = np.zeros(values.shape, values.dtype)
    kept = {state: value.asnumpy().copy() for state, value in states.items()}

    def output(place: tuple[int, ...], distance: float) -> Any:
        moved = values.copy()
        moved[place] += distance
        array[:] = moved
        for state, value in kept.items():
            executor.aux_dict[state][:] = value
        executor.forward(is_train=training)
        return executor.outputs[0].asnumpy().copy()

    for place in np.ndindex(values.shape):
        slopes[place] = (output(place, eps / 2) - output(place, -eps / 2)).sum() / eps
    array[:] = values
    return slopes

"""Functions with a backward pass of their own (`torch.autograd.Function`), which exporting leaves out."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import GraphError
from .installed import installed

CLOSE = 1e-3
"""The difference that rounding may make, relative to the largest gradient."""


class _Context:
    """Takes what a forward pass saves for its backward pass."""

    needs_input_grad: tuple[bool, ...] = (True,) * 64

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: Any) -> None: ...

    def mark_non_differentiable(self, *tensors: Any) -> None: ...

    def set_materialize_grads(self, value: bool) -> None: ...


@contextmanager
def watched(called: Any) -> Iterator[None]:
    """Call `called` with the class and the arguments of each such function that runs, but PyTorch's own."""
    torch = installed()
    plain = torch.autograd.Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not cls.__module__.startswith("torch._"):
            called(cls, args)
        return plain.__get__(None, cls)(*args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)
    try:
        yield
    finally:
        torch.autograd.Function.apply = plain


def require_derived(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Run the module, and raise GraphError for a function that has other gradients than its forward pass.

    Gradients are derived from the forward pass, so the backward pass that it has would have no effect.
    """
    torch = installed()
    inside: list[bool] = []

    def check(cls: Any, given: Sequence[Any]) -> None:
        if inside or not torch.is_grad_enabled():
            return
        inside.append(True)
        if not _is_derived(cls, given):
            raise GraphError(
                f"{cls.__name__} has a backward pass of its own. Gradients are derived from its forward "
                "pass, and the two were not found to agree; write it with detach, for example "
                "x + (x.round() - x).detach()"
            )
        inside.clear()

    with torch.random.fork_rng(), watched(check):
        copy.deepcopy(module)(*args, **kwargs)


def _is_derived(cls: Any, given: Sequence[Any]) -> bool:
    """Tell whether a function has the gradients of its forward pass, at these arguments."""
    torch = installed()
    own, plain = ([_leaf(each) for each in given] for _ in range(2))
    apart = cls.setup_context is not torch.autograd.Function.setup_context
    forward = cls.forward if apart else lambda *each: cls.forward(_Context(), *each)
    found = _tensors(cls.apply(*own))
    try:
        _propagate(_tensors(torch.func.functionalize(forward)(*plain)), found)
    except RuntimeError:  # PyTorch has no gradient of the forward pass
        return False
    return all(_agree(one.grad, other.grad) for one, other in zip(own, plain, strict=True) if _is_leaf(one))


def _propagate(derived: Sequence[Any], found: Sequence[Any]) -> None:
    """Propagate the same gradients of the outputs to both sets of inputs."""
    for number, (one, other) in enumerate(zip(found, derived, strict=True)):
        direction = installed().randn_like(one)
        for output in (one, other):
            if one.requires_grad and output.requires_grad:
                output.backward(direction, retain_graph=number + 1 < len(found))


def _leaf(value: Any) -> Any:
    torch = installed()
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, installed().Tensor) and value.requires_grad


def _tensors(found: Any) -> list[Any]:
    return [
        each for each in (found if isinstance(found, tuple | list) else (found,)) if hasattr(each, "grad")
    ]


def _agree(one: Any, other: Any) -> bool:
    if one is None or other is None:
        known = other if one is None else one
        return known is None or not bool(known.any())
    return bool((one - other).abs().max() <= CLOSE * max(1e-6, float(one.abs().max())))

"""The library's operators and their gradients: kernel bodies, run on the CPU, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tofu.operators import names

SAMPLE = (
    "BatchNorm",
    "Convolution",
    "Embedding",
    "LRN",
    "Pooling",
    "SoftmaxOutput",
    "adam_update",
    "take",
    "topk",
)


def run(
    cases: Callable[..., Any],
    host: Callable[..., Any],
    compare: Callable[..., None],
    chosen: list[str],
    dtype: str,
) -> None:
    found = cases(chosen)
    kernels = {case: case.kernel(dtype) for case in found}
    machine = host(list({kernel.name: kernel for kernel in kernels.values()}.values()))
    failures = []
    for case, kernel in kernels.items():
        description = case.stage.description
        try:
            compare(
                machine,
                case.bound,
                kernel,
                dict.fromkeys(description.tensor_names, dtype),
                [dtype] * len(description.outputs),
            )
        except AssertionError as error:
            failures.append(f"{case.operator}: {description.name}: {error}")
    assert not failures, f"{len(failures)} of {len(kernels)}:\n" + "\n".join(failures)


def test_sample(cases: Any, host: Any, compare: Any) -> None:
    run(cases, host, compare, [name for name in names() if name in SAMPLE], "float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_operator(cases: Any, host: Any, compare: Any, dtype: str) -> None:
    run(cases, host, compare, list(names()), dtype)

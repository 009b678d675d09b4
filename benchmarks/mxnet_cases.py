"""The results of MXNet for single operators, as a file of cases for the tests.

Runs in an environment that holds MXNet 1.9.1 (`pip install mxnet==1.9.1 'numpy<1.24'`) and nothing of Tofu,
from the root of the checkout:

    python -m benchmarks.mxnet_cases cases.json
    TOFU_MXNET_CASES=cases.json pytest tests/operators/library/test_reference_cases.py

Every record has the operator, its attributes as text, inputs, outputs, head gradients and the gradients of
the inputs that have one; if an operator has states also those and what became of them. Each case runs in
a separate process: some of MXNet's operators write beyond their memory, which would harm later cases.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

from .case_lists import Case, all_cases
from .case_lists.updates import STATES

WITHOUT_VENDOR_LIBRARY = ("Pooling",)
"""Here MXNet's own loops compute: the vendor library's gradient of an average is not that of its forward pass
if a window is cut off. Elsewhere the library does: MXNet's own recurrent cells leave out biases."""


def recorded(case: Case, generator: np.random.Generator) -> dict[str, Any]:
    """Return the record of one case. Raises MXNetError for one that MXNet refuses."""
    record: dict[str, Any] = {"op": case.operator, "attrs": dict(case.attributes)}
    record["inputs"] = {name: _described(array) for name, array in case.inputs.items()}
    if case.operator in STATES:
        return record | _updated(case)
    if case.states:
        record["states"] = {name: _described(array) for name, array in case.states.items()}
    if not case.training:
        record["training"] = False
    return record | _computed(case, generator)


def _described(array: Any) -> dict[str, Any]:
    return {"shape": list(array.shape), "data": _numbers(array)}


def _numbers(array: Any) -> list[float]:
    """Digits enough to tell any two numbers of MXNet's type apart."""
    return [float(f"{number:.9g}") for number in np.ravel(array).tolist()]


def _computed(case: Case, generator: np.random.Generator) -> dict[str, Any]:
    """Outputs and gradients through a bound executor; no gradients where MXNet has none."""
    try:
        return _ran(case, generator, gradients=case.training)
    except mx.base.MXNetError as error:
        if not case.training:
            raise
        return _ran(case, generator, gradients=False) | {"grads": None, "grad_error": _last_line(error)}


def _ran(case: Case, generator: np.random.Generator, gradients: bool) -> dict[str, Any]:
    executor = _bound(case, gradients)
    outputs = [output.asnumpy() for output in executor.forward(is_train=case.training)]
    record: dict[str, Any] = {
        "outputs": [_described(output) for output in outputs],
        "outputs_names": executor._symbol.list_outputs(),
        "grads": None,
    }
    if gradients:
        heads = [_head(generator, output) for output in outputs]
        executor.backward([mx.nd.array(head, dtype=head.dtype) for head in heads])
        found = {name: array.asnumpy() for name, array in executor.grad_dict.items() if array is not None}
        record |= {
            "head_grads": [_numbers(head) for head in heads],
            "grads": {name: _numbers(array) for name, array in found.items()},
        }
    if case.states and case.training:
        record["states_after"] = {
            name.removeprefix("op_"): _described(array.asnumpy()) for name, array in executor.aux_dict.items()
        }
    return record


def _head(generator: np.random.Generator, output: Any) -> Any:
    """Return a head gradient of the output's type: whole numbers for whole numbers."""
    if output.dtype.kind == "f":
        return generator.uniform(-1, 1, output.shape).astype(output.dtype)
    return generator.integers(1, 5, output.shape).astype(output.dtype)


def _bound(case: Case, gradients: bool) -> Any:
    function = getattr(mx.sym, case.operator, None) or getattr(mx.sym._internal, case.operator)
    variables = {name: mx.sym.Variable(name) for name in case.inputs}
    attributes = {name: value for name, value in case.attributes.items() if name != "num_args"}
    if "num_args" in case.attributes:
        symbol = function(*variables.values(), name="op", **attributes)
    elif case.operator == "add_n":
        symbol = function(*variables.values(), name="op")
    else:
        symbol = function(**variables, name="op", **attributes)
    arrays = {name: mx.nd.array(array, dtype=array.dtype) for name, array in case.inputs.items()}
    free = [name for name in case.inputs if name not in case.fixed] if gradients else []
    blank = {name: mx.nd.zeros(case.inputs[name].shape) for name in free}
    states = {f"op_{name}": mx.nd.array(array) for name, array in case.states.items()}
    return symbol.bind(
        mx.cpu(), arrays, args_grad=blank, grad_req="write" if free else "null", aux_states=states
    )


def _updated(case: Case) -> dict[str, Any]:
    """Return the new weight, and the states after it."""
    arrays = {name: mx.nd.array(array) for name, array in case.inputs.items()}
    getattr(mx.nd, case.operator)(*arrays.values(), out=arrays["weight"], **case.attributes)
    found = [arrays["weight"], *(arrays[name] for name in STATES[case.operator])]
    return {"outputs": [_described(array.asnumpy()) for array in found], "grads": None}


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]


def _apart(case: Case, seed: int) -> dict[str, Any]:
    """Return the record from a separate process, or `{"refused": reason}`."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.environ["MXNET_MKLDNN_ENABLED"] = str(int(case.operator not in WITHOUT_VENDOR_LIBRARY))
        try:
            answer = recorded(case, np.random.default_rng(seed))
        except Exception as error:
            answer = {"refused": _last_line(error)}
        with os.fdopen(writing, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(text) if text else {"refused": f"MXNet ended with status {status}"}
    return found


def main(path: str) -> None:
    """Write the file, list on standard output what MXNet refuses, and count."""
    records = []
    cases = all_cases()
    for number, case in enumerate(cases):
        record = _apart(case, number)
        if "refused" not in record:
            records.append(record)
            continue
        shapes = {name: array.shape for name, array in case.inputs.items()}
        print(f"MXNet refuses {case.operator} {dict(case.attributes)} {shapes}: {record['refused']}")
    Path(path).write_text(json.dumps({"mxnet": mx.__version__, "records": records}) + "\n")
    operators = Counter(record["op"] for record in records)
    print(f"{len(records)} cases of {len(operators)} operators, {len(cases) - len(records)} refused by MXNet")


if __name__ == "__main__":
    main(sys.argv[1])

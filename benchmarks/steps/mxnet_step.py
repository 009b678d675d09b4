"""The training step in MXNet: python -m benchmarks.steps.mxnet_step FOLDER CORE FORM.

FORM is `graph` for the graph that Tofu wrote, or `fused` for a recurrent network of MXNet's RNN operator.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.steps.serving import MOMENTUM, RATE, given, loss_of, pin, serve


def main(folder: str, core: str, form: str) -> None:
    pin(int(core))
    import mxnet as mx

    facts, tensors = given(folder)
    arrays = {name: mx.nd.array(value) for name, value in tensors.items()}
    data, label = arrays.pop("data"), arrays.pop("softmax_label")
    if form == "graph":
        symbol = mx.sym.load(str(Path(folder) / "graph.json"))
    else:
        symbol, arrays = fused(mx, facts, arrays)
    module = mx.mod.Module(symbol, data_names=["data"], label_names=["softmax_label"])
    module.bind([("data", data.shape)], [("softmax_label", label.shape)])
    states = set(symbol.list_auxiliary_states())
    module.init_params(
        arg_params={name: array for name, array in arrays.items() if name not in states},
        aux_params={name: array for name, array in arrays.items() if name in states},
    )
    settings = {"learning_rate": RATE, "momentum": MOMENTUM, "wd": 0.0}
    module.init_optimizer(kvstore=None, optimizer="sgd", optimizer_params=settings)
    batch = mx.io.DataBatch([data], [label])
    labels = label.asnumpy()

    def step() -> float:
        module.forward_backward(batch)
        module.update()
        probabilities = module.get_outputs()[0].asnumpy()
        mx.nd.waitall()
        return loss_of(probabilities, labels)

    count = sum(int(np.prod(arrays[name].shape)) for name in arrays if name not in states)
    serve({"version": f"MXNet {mx.__version__}", "code_for": "", "parameters": count, "threads": 1}, step)


def fused(mx: Any, facts: dict[str, Any], arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the recurrent network and its parameters as one RNN operator."""
    cell = mx.rnn.FusedRNNCell(facts["hidden"], num_layers=facts["layers"], mode="lstm", prefix="lstm_")
    outputs, _ = cell.unroll(facts["steps"], mx.sym.Variable("data"), layout="NTC", merge_outputs=True)
    last = mx.sym.slice_axis(outputs, axis=1, begin=facts["steps"] - 1, end=facts["steps"])
    classes = arrays["pred_weight"].shape[0]
    scores = mx.sym.FullyConnected(mx.sym.Flatten(last), num_hidden=classes, name="pred")
    packed = cell.pack_weights(cell.unfuse().unpack_weights(arrays))
    return mx.sym.SoftmaxOutput(scores, name="softmax"), packed


if __name__ == "__main__":
    main(*sys.argv[1:])

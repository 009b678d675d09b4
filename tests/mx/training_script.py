"""Trains a small network with each optimizer and writes what came of it, as JSON.

`python training_script.py mxnet_training.json` with MXNet 1.9.1 installed gives the numbers that the tests
compare with.
"""

import json
import sys
from pathlib import Path

import mxnet as mx
import numpy as np

CASES = {
    "sgd": {"learning_rate": 0.2, "wd": 0.05},
    "sgd momentum": {"learning_rate": 0.2, "momentum": 0.9, "wd": 0.05, "clip_gradient": 0.1},
    "sgd factor": {"learning_rate": 0.4, "lr_scheduler": ("FactorScheduler", 3, 0.5)},
    "sgd factors": {"learning_rate": 0.4, "lr_scheduler": ("MultiFactorScheduler", [2, 5], 0.5)},
    "sgd poly": {"learning_rate": 0.4, "lr_scheduler": ("PolyScheduler", 7, 0.4)},
    "sgd cosine": {"learning_rate": 0.4, "lr_scheduler": ("CosineScheduler", 7, 0.3, 0.1)},
    "adam": {"learning_rate": 0.05, "wd": 0.02},
    "rmsprop": {"learning_rate": 0.05, "wd": 0.02, "gamma1": 0.8},
    "rmsprop centered": {"learning_rate": 0.01, "centered": True},
}


def network():
    data = mx.sym.Variable("data")
    weight = mx.sym.Variable("fc1_weight", lr_mult=0.5, wd_mult=3.0)
    hidden = mx.sym.FullyConnected(data, weight, num_hidden=8, name="fc1", attr={"__lr_mult__": "2"})
    hidden = mx.sym.Activation(hidden, act_type="tanh")
    hidden = mx.sym.BatchNorm(hidden, name="bn", fix_gamma=False, momentum=0.8)
    hidden = mx.sym.FullyConnected(hidden, num_hidden=4, name="fc2")
    return mx.sym.SoftmaxOutput(hidden, name="softmax")


def start(symbol):
    generator = np.random.RandomState(3)
    arguments, _, states = symbol.infer_shape(data=(5, 6))
    named = zip(symbol.list_arguments(), arguments, strict=True)
    inputs = ("data", "softmax_label")
    return (
        {n: mx.nd.array(generator.uniform(-0.5, 0.5, shape)) for n, shape in named if n not in inputs},
        {
            n: mx.nd.array(generator.uniform(0.5, 1, shape))
            for n, shape in zip(symbol.list_auxiliary_states(), states, strict=True)
        },
    )


def batches():
    generator = np.random.RandomState(7)
    images = generator.uniform(-1, 1, (20, 6)).astype("float32")
    return mx.io.NDArrayIter(images, generator.randint(0, 4, 20).astype("float32"), batch_size=5)


def learned(module):
    arguments, states = module.get_params()
    return {
        n: np.round(array.asnumpy().astype(float), 5).tolist() for n, array in {**arguments, **states}.items()
    }


def fitted(name, settings, context):
    settings = dict(settings)
    if "lr_scheduler" in settings:
        kind, *arguments = settings["lr_scheduler"]
        settings["lr_scheduler"] = getattr(mx.lr_scheduler, kind)(*arguments)
    symbol = network()
    arguments, states = start(symbol)
    module = mx.mod.Module(
        symbol, context=context, fixed_param_names=["fc2_bias"] if name == "adam" else None
    )
    metric = mx.metric.create(["acc", "ce", mx.metric.Perplexity(None), mx.metric.TopKAccuracy(2)])
    values = []
    module.fit(
        batches(),
        eval_metric=metric,
        optimizer=name.split()[0],
        optimizer_params=settings,
        arg_params=arguments,
        aux_params=states,
        num_epoch=2,
        batch_end_callback=lambda param: values.append(param.eval_metric.get_name_value()),
    )
    return {"metrics": [[n, round(float(value), 5)] for n, value in values[-1]], "learned": learned(module)}


def by_hand(context):
    """The metric is asked between forward and backward."""
    symbol, data = network(), batches()
    arguments, states = start(symbol)
    module = mx.mod.Module(symbol, context=context)
    module.bind(data_shapes=data.provide_data, label_shapes=data.provide_label)
    module.init_params(arg_params=arguments, aux_params=states)
    module.init_optimizer(optimizer="sgd", optimizer_params=(("learning_rate", 0.2), ("wd", 0.05)))
    metric = mx.metric.create("ce")
    for _ in range(2):
        data.reset()
        metric.reset()
        for batch in data:
            module.forward(batch, is_train=True)
            module.update_metric(metric, batch.label)
            module.backward()
            module.update()
    found = {"metrics": [[metric.get()[0], round(float(metric.get()[1]), 5)]], "learned": learned(module)}
    outputs = module.predict(mx.io.NDArrayIter(np.ones((13, 6), "float32"), None, batch_size=5))
    found["predicted"] = np.round(outputs.asnumpy().astype(float), 5).tolist()
    return found


def everything(context):
    found = {name: fitted(name, settings, context) for name, settings in CASES.items()}
    return {**found, "by hand": by_hand(context)}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(everything(mx.cpu())), encoding="utf-8")

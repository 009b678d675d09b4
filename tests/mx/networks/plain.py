"""Stacks of layers: a perceptron, and convolutions in groups as in VGG and AlexNet."""

import mxnet as mx
import numpy as np


def add_fc(data, width, name):
    data = mx.symbol.FullyConnected(data=data, name=name, num_hidden=width)
    data = mx.symbol.Activation(data=data, name="relu_" + name, act_type="relu")
    return mx.symbol.Dropout(data=data, p=0.5, name="drop_" + name)


def get_symbol(num_classes, layers=(1, 2), filters=(4, 6), batch_norm=True, dtype="float32", **kwargs):
    data = mx.sym.Variable(name="data")
    if dtype == "float16":
        data = mx.sym.Cast(data=data, dtype=np.float16)
    for i, num in enumerate(layers):
        for j in range(num):
            data = mx.sym.Convolution(
                data=data, kernel=(3, 3), pad=(1, 1), num_filter=filters[i], name="conv%d_%d" % (i + 1, j + 1)
            )
            if batch_norm:
                data = mx.symbol.BatchNorm(data=data, name="bn%d_%d" % (i + 1, j + 1))
            data = mx.sym.Activation(data, act_type="relu", name="relu%d_%d" % (i + 1, j + 1))
        data = mx.symbol.LRN(data=data, alpha=0.0001, beta=0.75, knorm=2, nsize=5, name="norm%d" % (i + 1))
        data = mx.sym.Pooling(
            data=data, pool_type="max", kernel=(2, 2), stride=(2, 2), name="pool%d" % (i + 1)
        )
    flat = mx.sym.Flatten(data=data, name="flatten")
    fc = add_fc(add_fc(flat, 16, "fc6"), 16, "fc7")
    fc = mx.sym.FullyConnected(data=fc, num_hidden=num_classes, name="fc8")
    if dtype == "float16":
        fc = mx.sym.Cast(data=fc, dtype=np.float32)
    return mx.symbol.SoftmaxOutput(data=fc, name="softmax")

"""Residual units before and after activation, with groups of filters; separable convolutions."""

import mxnet as mx
import numpy as np


def residual_unit(data, num_filter, stride, dim_match, name, num_group=1, bn_mom=0.9, memonger=False):
    bn1 = mx.sym.BatchNorm(data=data, fix_gamma=False, eps=2e-5, momentum=bn_mom, name=name + "_bn1")
    act1 = mx.sym.Activation(data=bn1, act_type="relu", name=name + "_relu1")
    conv1 = mx.sym.Convolution(
        data=act1,
        num_filter=num_filter,
        num_group=num_group,
        kernel=(3, 3),
        stride=stride,
        pad=(1, 1),
        no_bias=True,
        workspace=256,
        name=name + "_conv1",
    )
    bn2 = mx.sym.BatchNorm(data=conv1, fix_gamma=False, eps=2e-5, momentum=bn_mom, name=name + "_bn2")
    if dim_match:
        shortcut = data
    else:
        shortcut = mx.sym.Convolution(
            data=act1, num_filter=num_filter, kernel=(1, 1), stride=stride, no_bias=True, name=name + "_sc"
        )
    if memonger:
        shortcut._set_attr(mirror_stage="True")
    return bn2 + shortcut


def separable(data, num_in, num_out, name):
    depth = mx.sym.Convolution(
        data, num_filter=num_in, kernel=(3, 3), pad=(1, 1), num_group=num_in, no_bias=True, name=name + "_dw"
    )
    depth = mx.sym.clip(depth, 0, 6, name=name + "_relu6")
    return mx.sym.Convolution(depth, num_filter=num_out, kernel=(1, 1), name=name + "_pw")


def get_symbol(num_classes, num_units=2, num_group=2, memonger=False, dtype="float32", **kwargs):
    data = mx.sym.Variable(name="data")
    if dtype == "float32":
        data = mx.sym.identity(data=data, name="id")
    elif dtype == "float16":
        data = mx.sym.Cast(data=data, dtype=np.float16)
    data = mx.sym.BatchNorm(data=data, fix_gamma=True, eps=2e-5, momentum=0.9, name="bn_data")
    body = mx.sym.Convolution(
        data=data, num_filter=4, kernel=(3, 3), stride=(1, 1), pad=(1, 1), no_bias=True, name="conv0"
    )
    for unit in range(num_units):
        stride = (2, 2) if unit == 0 else (1, 1)
        body = residual_unit(
            body, 8, stride, unit > 0, "stage1_unit%d" % (unit + 1), num_group=num_group, memonger=memonger
        )
    body = separable(body, 8, 8, "separable")
    bn1 = mx.sym.BatchNorm(data=body, fix_gamma=False, eps=2e-5, momentum=0.9, name="bn1")
    relu1 = mx.sym.Activation(data=bn1, act_type="relu", name="relu1")
    pool1 = mx.sym.Pooling(data=relu1, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")
    flat = mx.sym.Flatten(data=pool1)
    fc1 = mx.sym.FullyConnected(data=flat, num_hidden=num_classes, name="fc1")
    if dtype == "float16":
        fc1 = mx.sym.Cast(data=fc1, dtype=np.float32)
    return mx.sym.SoftmaxOutput(data=fc1, name="softmax")

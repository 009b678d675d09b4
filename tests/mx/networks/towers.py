"""Blocks of parallel towers that are concatenated, as in GoogLeNet and Inception."""

import mxnet as mx


def Conv(data, num_filter, kernel=(1, 1), stride=(1, 1), pad=(0, 0), name=None, suffix="", withRelu=True):
    conv = mx.sym.Convolution(
        data=data,
        num_filter=num_filter,
        kernel=kernel,
        stride=stride,
        pad=pad,
        no_bias=True,
        name="%s%s_conv2d" % (name, suffix),
    )
    bn = mx.sym.BatchNorm(
        data=conv, name="%s%s_batchnorm" % (name, suffix), fix_gamma=True, eps=2e-5, momentum=0.9
    )
    if not withRelu:
        return bn
    return mx.sym.Activation(data=bn, act_type="relu", name="%s%s_relu" % (name, suffix))


def Block(data, num_1x1, num_3x3_red, num_3x3, num_proj, pool, name):
    tower_1x1 = Conv(data, num_1x1, name="%s_1x1" % name)
    tower_3x3 = Conv(data, num_3x3_red, name="%s_tower" % name, suffix="_reduce")
    tower_3x3 = Conv(tower_3x3, num_3x3, kernel=(3, 3), pad=(1, 1), name="%s_tower" % name, suffix="_conv_1")
    tower_1x3 = Conv(tower_3x3, num_3x3, kernel=(1, 3), pad=(0, 1), name="%s_mixed" % name, suffix="_conv")
    pooling = mx.sym.Pooling(
        data=data,
        kernel=(3, 3),
        stride=(1, 1),
        pad=(1, 1),
        pool_type=pool,
        name="%s_pool_%s_pool" % (pool, name),
    )
    cproj = Conv(pooling, num_proj, name="%s_tower_2" % name, suffix="_conv")
    towers = [tower_1x1, tower_3x3, tower_1x3, cproj]
    return mx.sym.Concat(*towers, name="ch_concat_%s_chconcat" % name)


def Residual(net, channels, scale=1.0, with_act=True):
    out = mx.symbol.Concat(*[Conv(net, 3, name="res_a"), Conv(net, 3, (3, 3), pad=(1, 1), name="res_b")])
    out = Conv(out, channels, name="res_out", withRelu=False)
    net += scale * out
    if with_act:
        return mx.symbol.Activation(data=net, act_type="relu")
    return net


def get_symbol(num_classes=10, **kwargs):
    data = mx.symbol.Variable(name="data")
    net = Conv(data, 6, kernel=(3, 3), stride=(2, 2), name="stem")
    net = mx.sym.Pooling(data=net, kernel=(3, 3), stride=(2, 2), pool_type="max", pooling_convention="full")
    net = Block(net, 4, 3, 4, 2, "avg", "mixed")
    net = Block(net, 2, 3, 2, 2, "max", "mixed_1")
    net = Residual(net, 8, scale=0.17)
    net = mx.symbol.Pooling(net, kernel=(1, 1), global_pool=True, pool_type="avg", name="global_pool")
    net = mx.symbol.Flatten(net)
    net = mx.symbol.Dropout(data=net, p=0.2)
    net = mx.symbol.FullyConnected(data=net, num_hidden=num_classes, name="fc1")
    return mx.symbol.SoftmaxOutput(data=net, name="softmax")

"""Layers of networks: convolutions, pooling, normalisation, images."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case, Values, case, listed

SPACES = (
    ((7,), {"kernel": (3,)}),
    ((7,), {"kernel": (3,), "stride": (2,), "pad": (1,), "dilate": (2,)}),
    ((5, 6), {"kernel": (3, 2)}),
    ((5, 6), {"kernel": (3, 3), "pad": (1, 1)}),
    ((6, 5), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 2)}),
    ((7, 6), {"kernel": (2, 3), "dilate": (3, 2)}),
    ((5, 5), {"kernel": (1, 1), "stride": (2, 2)}),
    ((7, 7), {"kernel": (3, 3), "stride": (3, 2), "pad": (2, 1), "dilate": (1, 2)}),
    ((3, 4, 4), {"kernel": (2, 2, 2)}),
    ((4, 3, 4), {"kernel": (3, 1, 2), "stride": (2, 1, 2), "pad": (1, 0, 1)}),
    ((5, 5, 5), {"kernel": (2, 2, 2), "dilate": (2, 1, 3)}),
)


def cases(values: Values) -> Iterator[Case]:
    yield from _convolutions(values)
    yield from _deconvolutions(values)
    yield from _pools(values)
    yield from _normalised(values)
    yield from _images(values)


def _convolutions(values: Values) -> Iterator[Case]:
    for space, attributes in SPACES:
        for groups, channels, filters in ((1, 2, 3), (2, 4, 6), (4, 4, 4)):
            weight = values.signed(filters, channels // groups, *attributes["kernel"])
            tensors = {"data": values.signed(2, channels, *space), "weight": weight}
            given = {**attributes, "num_filter": filters, "num_group": groups}
            yield case("Convolution", given, **tensors, bias=values.signed(filters))
            yield case("Convolution", {**given, "no_bias": True}, **tensors)
    layout = {"kernel": (3, 3), "num_filter": 2, "layout": "NCHW", "no_bias": True}
    yield case("Convolution", layout, data=values.signed(1, 2, 4, 4), weight=values.signed(2, 2, 3, 3))


def _deconvolutions(values: Values) -> Iterator[Case]:
    more = (
        ((3, 3), {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1)}),
        ((3, 3), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "adj": (1, 1)}),
        ((3, 4), {"kernel": (3, 3), "stride": (2, 3), "adj": (1, 2)}),
        ((3, 3), {"kernel": (3, 3), "stride": (2, 2), "target_shape": (6, 6)}),
        ((3, 3), {"kernel": (4, 4), "stride": (2, 2), "target_shape": (6, 7)}),
        ((3, 3), {"kernel": (3, 3), "stride": (2, 2), "target_shape": (5, 6), "pad": (9, 9), "adj": (1, 1)}),
        ((4,), {"kernel": (3,), "stride": (2,), "adj": (1,)}),
        ((2, 3, 2), {"kernel": (2, 2, 3), "stride": (2, 1, 2), "adj": (1, 0, 1)}),
    )
    for space, attributes in (*SPACES, *more):
        for groups, channels, filters in ((1, 2, 3), (2, 4, 6)):
            weight = values.signed(channels, filters // groups, *attributes["kernel"])
            tensors = {"data": values.signed(2, channels, *space), "weight": weight}
            given = {**attributes, "num_filter": filters, "num_group": groups}
            yield case("Deconvolution", {**given, "no_bias": False}, **tensors, bias=values.signed(filters))
            yield case("Deconvolution", given, **tensors)


def _pools(values: Values) -> Iterator[Case]:
    windows = (
        ((7,), {"kernel": (3,), "stride": (2,)}),
        ((6,), {"kernel": (3,), "stride": (2,), "pad": (1,)}),
        ((6, 6), {"kernel": (2, 2)}),
        ((6, 6), {"kernel": (2, 2), "stride": (2, 2)}),
        ((7, 6), {"kernel": (3, 3), "stride": (2, 2)}),
        ((7, 6), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
        ((6, 8), {"kernel": (3, 2), "stride": (3, 2), "pad": (0, 1)}),
        ((5, 5), {"kernel": (5, 5)}),
        ((9, 9), {"kernel": (3, 3), "stride": (3, 3), "pad": (1, 1)}),
        ((4, 5, 4), {"kernel": (2, 3, 2), "stride": (2, 2, 1), "pad": (1, 1, 0)}),
    )
    for kind in ("max", "avg", "sum"):
        for space, attributes in windows:
            for convention in ("valid", "full"):
                given = {**attributes, "pool_type": kind, "pooling_convention": convention}
                yield case("Pooling", given, data=values.signed(2, 2, *space))
        for space in ((5,), (3, 4), (2, 3, 2)):
            kernel = (2,) * len(space)
            over = {"kernel": kernel, "pool_type": kind, "global_pool": True}
            yield case("Pooling", over, data=values.signed(2, 3, *space))
            strided = {**over, "stride": kernel, "pad": (1,) * len(space), "pooling_convention": "full"}
            yield case("Pooling", strided, data=values.signed(2, 3, *space))
        yield case("Pooling", {"pool_type": kind, "global_pool": True}, data=values.signed(2, 3, 3, 3))
    tied = listed(1, 1, 0, 0, 1, 1, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2).reshape(1, 1, 4, 4)
    yield case("Pooling", {"kernel": (2, 2), "pool_type": "max"}, data=tied)
    inner = {"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg", "count_include_pad": False}
    yield case("Pooling", inner, data=values.signed(1, 2, 5, 5))
    yield case(
        "Pooling", {**inner, "pooling_convention": "full", "stride": (2, 2)}, data=values.signed(1, 2, 6, 6)
    )
    for kernel in ((3, 3), (4, 4)):
        wide = {"kernel": kernel, "stride": (2, 2), "pad": (1, 1), "pool_type": "max"}
        yield case("Pooling", wide, data=values.whole(0, 2, 2, 2, 6, 6))
    yield case("Pooling", {"pool_type": "max", "global_pool": True}, data=values.whole(0, 2, 2, 2, 3, 3))


def _normalised(values: Values) -> Iterator[Case]:
    for shape in ((4, 3), (3, 3, 4), (2, 3, 2, 3), (2, 3, 2, 2, 2)):
        for attributes in (
            {},
            {"fix_gamma": False},
            {"fix_gamma": False, "eps": 0.1, "momentum": 0.5},
            {"fix_gamma": False, "use_global_stats": True},
            {"use_global_stats": True},
            {"fix_gamma": False, "axis": len(shape) - 1},
            {"fix_gamma": False, "axis": -1},
            {"fix_gamma": False, "axis": 0},
        ):
            width = shape[attributes.get("axis", 1)]
            tensors = {
                "data": values.signed(*shape),
                "gamma": values.unit(width),
                "beta": values.signed(width),
            }
            states = {"moving_mean": values.signed(width), "moving_var": values.unit(width)}
            yield case("BatchNorm", attributes, states, **tensors)
            yield case("BatchNorm", attributes, states, training=False, **tensors)
    for shape in ((2, 3, 4), (2, 3, 2, 3), (2, 3, 2, 2, 2), (1, 3, 2, 2)):
        for eps in (0.001, 0.1):
            affine = {"gamma": values.unit(3), "beta": values.signed(3)}
            yield case("InstanceNorm", {"eps": eps}, data=values.signed(*shape), **affine)
        for mode in ("instance", "channel", "spatial"):
            yield case("L2Normalization", {"mode": mode}, data=values.signed(*shape))
            yield case("L2Normalization", {"mode": mode, "eps": 0.5}, data=values.signed(*shape))
    yield case("L2Normalization", data=values.signed(2, 3))
    for attributes in (
        {"nsize": 3},
        {"nsize": 5, "alpha": 0.5, "beta": 0.5, "knorm": 1.0},
        {"nsize": 1, "alpha": 0.1},
        {"nsize": 7, "alpha": 0.3, "beta": 1.2},
    ):
        yield case("LRN", attributes, data=values.signed(2, 4, 2, 3))
    for axis in (-1, 0, 1, -2):
        width = (2, 3, 4)[axis]
        affine = {"gamma": values.unit(width), "beta": values.signed(width)}
        yield case("LayerNorm", {"axis": axis}, data=values.signed(2, 3, 4), **affine)
    for training in (False, True):
        for attributes in ({"p": 0.0}, {"p": 0.0, "mode": "always"}):
            yield case("Dropout", attributes, training=training, data=values.signed(3, 4))
    yield case("Dropout", {"p": 0.7}, training=False, data=values.signed(3, 4))
    for momentum in (0.5, 0.9):
        yield case(
            "IdentityAttachKLSparseReg",
            {"sparseness_target": 0.2, "penalty": 0.05, "momentum": momentum},
            {"moving_avg": values.unit(3)},
            data=values.unit(4, 3),
        )


def _images(values: Values) -> Iterator[Case]:
    for scale in (1, 2, 3):
        one = {"scale": scale, "sample_type": "nearest", "num_args": 1}
        yield case("UpSampling", one, arg0=values.signed(2, 3, 2, 3))
        width = 2 * scale - scale % 2
        bilinear = {"scale": scale, "sample_type": "bilinear", "num_filter": 2, "num_args": 2}
        yield case(
            "UpSampling", bilinear, data=values.signed(1, 2, 3, 4), weight=values.unit(2, 1, width, width)
        )
    for mode in ("concat", "sum"):
        two = {"scale": 2, "sample_type": "nearest", "num_args": 2, "multi_input_mode": mode}
        yield case("UpSampling", two, arg0=values.signed(1, 2, 2, 2), arg1=values.signed(1, 2, 4, 4))
        yield case("UpSampling", two, arg0=values.signed(1, 2, 4, 4), arg1=values.signed(1, 2, 2, 2))
    affine = {"transform_type": "affine", "target_shape": (3, 4)}
    yield case("GridGenerator", affine, data=values.signed(2, 6))
    yield case("GridGenerator", {**affine, "target_shape": (2, 2)}, data=values.signed(1, 6))
    yield case("GridGenerator", {"transform_type": "warp"}, data=values.signed(2, 2, 3, 4))
    for spread in (0.4, 0.8):
        grid = values.signed(2, 2, 3, 3) * spread
        yield case("BilinearSampler", data=values.signed(2, 2, 4, 5), grid=grid)
        sampled = {"target_shape": (3, 4), "transform_type": "affine", "sampler_type": "bilinear"}
        yield case(
            "SpatialTransformer", sampled, data=values.signed(2, 2, 4, 5), loc=values.signed(2, 6) * spread
        )
    whole = {"target_shape": (0, 0), "transform_type": "affine", "sampler_type": "bilinear"}
    yield case("SpatialTransformer", whole, data=values.signed(1, 2, 4, 4), loc=values.unit(1, 6))
    regions = listed(0, 0, 0, 3, 3, 1, 1, 2, 6, 4, 0, 2, 2, 2, 2, 1, 0, 3, 5, 9, 0, 3, 1, 2, 0).reshape(5, 5)
    for size, scale in (((2, 2), 1.0), ((3, 2), 0.5), ((1, 1), 0.7), ((4, 4), 1.0)):
        attributes = {"pooled_size": size, "spatial_scale": scale}
        yield case("ROIPooling", attributes, fixed=("rois",), data=values.distinct(2, 2, 6, 7), rois=regions)
    for attributes in (
        {},
        {"kernel_size": 1, "max_displacement": 2, "pad_size": 2},
        {"kernel_size": 3, "max_displacement": 1, "pad_size": 2},
        {"kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 2, "pad_size": 3},
        {"kernel_size": 1, "max_displacement": 2, "stride2": 2, "pad_size": 2, "is_multiply": False},
        {
            "kernel_size": 3,
            "max_displacement": 3,
            "stride1": 1,
            "stride2": 2,
            "pad_size": 3,
            "is_multiply": False,
        },
    ):
        tensors = {"data1": values.signed(1, 2, 6, 7), "data2": values.signed(1, 2, 6, 7)}
        yield case("Correlation", attributes, **tensors)

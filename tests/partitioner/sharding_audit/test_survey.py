"""DTensor's rules, held against descriptions: wrong rules of PyTorch 2.13 are found, right ones agree."""

from __future__ import annotations

from typing import Any

import pytest

import tofu
from tofu.partitioner.sharding_audit.described import DescribedRules
from tofu.plans import Replicate, Shard, Unreduced
from tofu.testing import assert_sharding, survey_shardings

R, TERMS = Replicate(), Unreduced("sum")


def rules(net: Any, shapes: dict[str, tuple[int, ...]], workers: int = 2) -> DescribedRules:
    return DescribedRules(tofu.inference_graph(net, shapes), workers)


def test_a_product_allows_what_its_sums_say() -> None:
    x = tofu.sym.Variable("x")
    net = tofu.sym.FullyConnected(x, num_hidden=6, no_bias=True, name="fc")
    found = rules(net, {"x": (4, 8)})

    def outputs(of_x: Any, of_weight: Any) -> set[Any]:
        return {made for (made,) in found.outputs({"x": of_x, "fc_weight": of_weight})}

    assert outputs(Shard(0), R) == {Shard(0)}
    assert outputs(R, Shard(0)) == {Shard(1)}
    assert outputs(Shard(1), Shard(1)) == {TERMS}
    assert outputs(TERMS, R) == outputs(R, TERMS) == {TERMS}
    assert outputs(R, R) == {R, Shard(0), Shard(1), TERMS}
    assert outputs(Shard(0), Shard(0)) == outputs(TERMS, TERMS) == outputs(Shard(1), Shard(0)) == set()


def test_stages_agree_on_what_passes_between_them() -> None:
    net = tofu.sym.relu(tofu.sym.FullyConnected(tofu.sym.Variable("x"), num_hidden=6, name="fc"), name="r")
    found = rules(net, {"x": (4, 8)})
    along = {"x": Shard(1), "fc_weight": Shard(1), "fc_bias": R}
    assert found.outputs(along) == set(), "terms of a sum cannot be read by relu"
    assert found.outputs({"x": R, "fc_weight": Shard(0), "fc_bias": Shard(0)}) == {(Shard(1),)}


def test_a_window_does_not_split_without_a_halo() -> None:
    conv = tofu.sym.Convolution(
        tofu.sym.Variable("x"), kernel=(3, 3), pad=(1, 1), num_filter=6, no_bias=True, name="c"
    )
    found = rules(conv, {"x": (2, 4, 8, 8)})
    assert found.outputs({"x": Shard(2), "c_weight": R}) == set()
    assert found.outputs({"x": Shard(1), "c_weight": Shard(1)}) == {(TERMS,)}
    patches = tofu.sym.Convolution(
        tofu.sym.Variable("x"), kernel=(2, 2), stride=(2, 2), num_filter=6, no_bias=True, name="c"
    )
    assert rules(patches, {"x": (2, 4, 8, 8)}).outputs({"x": Shard(2), "c_weight": R}) == {(Shard(2),)}


@pytest.mark.torch
def test_split_input_channels_of_convolutions_are_wrong() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    inputs = torch.randn(4, 6, 8, 8), torch.randn(6, 6, 3, 3)

    def conv(x: Any, w: Any) -> Any:
        return torch.nn.functional.conv2d(x, w, padding=1)

    message = (
        r"unsound: of S\(1\), S\(1\) DTensor gives R, which is wrong by 0\.\d of the largest value; "
        r"the description allows P\(sum\)"
    )
    with pytest.raises(AssertionError, match=message):
        assert_sharding(conv, [Shard(1), Shard(1)], inputs)
    assert assert_sharding(conv, [Shard(0), R], inputs).kind == "agreed"


@pytest.mark.torch
def test_products_and_maxima_agree() -> None:
    torch = pytest.importorskip("torch")
    from torch.distributed import tensor

    torch.manual_seed(0)
    inputs = torch.randn(4, 8), torch.randn(8, 6)
    found = survey_shardings(torch.mm, inputs)
    assert found.counts == {"agreed": 8, "moved": 8}
    assert assert_sharding(torch.mm, [tensor.Shard(1), tensor.Shard(0)], inputs).found.placements == (TERMS,)
    largest = assert_sharding(lambda x: torch.amax(x, 1), [Shard(1)], inputs[:1], workers=4)
    assert largest.described == ((Unreduced("max"),),)
    assert largest.kind == "agreed"


@pytest.mark.torch
def test_inputs_are_those_of_the_call_in_its_order() -> None:
    torch = pytest.importorskip("torch")
    numbers, table = torch.arange(8).reshape(2, 4), torch.randn(8, 6)
    assert assert_sharding(torch.nn.functional.embedding, [Shard(0), R], [numbers, table]).kind == "agreed"
    found = assert_sharding(lambda w, i: torch.nn.functional.embedding(i, w), [Shard(1), R], [table, numbers])
    assert found.found.placements == (Shard(2),)
    rows = assert_sharding(lambda w, i: torch.nn.functional.embedding(i, w), [Shard(0), R], [table, numbers])
    assert rows.found.placements == (None,), "DTensor has a placement of its own for masked rows"
    assert rows.kind == "own"
    assert found.kind == "agreed"


@pytest.mark.torch
def test_a_wrong_rule_of_a_user_is_found() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    def local_mean(x: Any) -> Any:
        from torch.distributed import tensor

        if not isinstance(x, tensor.DTensor):
            return x.mean(0)
        local = x.to_local().mean(0)
        return tensor.DTensor.from_local(local, x.device_mesh, [tensor.Replicate()], run_check=False)

    with pytest.raises(AssertionError, match=r"unsound: of S\(0\) DTensor gives R"):
        assert_sharding(local_mean, [Shard(0)], [torch.randn(4, 8)])
    assert assert_sharding(local_mean, [R], [torch.randn(4, 8)]).kind == "agreed"


@pytest.mark.torch
def test_what_cannot_be_judged_is_refused() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 8)
    with pytest.raises(tofu.TofuError, match="1 placements for 2 inputs"):
        assert_sharding(torch.add, [R], [x, x])
    with pytest.raises(tofu.TofuError, match=r"give Shard\(dim\), Replicate"):
        assert_sharding(torch.relu, ["R"], [x])
    with pytest.raises(tofu.TofuError, match="the number of workers is 1"):
        assert_sharding(torch.relu, [R], [x], workers=1)
    with pytest.raises(tofu.GraphError, match="no description"):
        survey_shardings(torch.special.bessel_j0, [x])

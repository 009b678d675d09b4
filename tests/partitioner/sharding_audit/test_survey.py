"""DTensor's rules, held against descriptions: wrong rules of PyTorch 2.13 are found, right ones agree."""

from __future__ import annotations

from typing import Any

import pytest

import tofu
from tofu.partitioner.sharding_audit.described import DescribedRules
from tofu.plans import Replicate, Shard, Unreduced
from tofu.testing import assert_sharding, survey_shardings

R, TERMS = Replicate(), Unreduced("sum")


class Rules:
    """The rules of a network with one output along one axis."""

    def __init__(self, net: Any, shapes: dict[str, tuple[int, ...]]) -> None:
        self.described = DescribedRules(tofu.inference_graph(net, shapes), (2,))

    def outputs(self, **inputs: Any) -> set[Any]:
        found = self.described.outputs({name: (placement,) for name, placement in inputs.items()})
        return {made for ((made,),) in found}


def test_a_product_allows_what_its_sums_say() -> None:
    x = tofu.sym.Variable("x")
    net = tofu.sym.FullyConnected(x, num_hidden=6, no_bias=True, name="fc")
    found = Rules(net, {"x": (4, 8)})

    def outputs(of_x: Any, of_weight: Any) -> set[Any]:
        return found.outputs(x=of_x, fc_weight=of_weight)

    assert outputs(Shard(0), R) == {Shard(0)}
    assert outputs(R, Shard(0)) == {Shard(1)}
    assert outputs(Shard(1), Shard(1)) == {TERMS}
    assert outputs(TERMS, R) == outputs(R, TERMS) == {TERMS}
    assert outputs(R, R) == {R, Shard(0), Shard(1), TERMS}
    assert outputs(Shard(0), Shard(0)) == outputs(TERMS, TERMS) == outputs(Shard(1), Shard(0)) == set()


def test_stages_agree_on_what_passes_between_them() -> None:
    net = tofu.sym.relu(tofu.sym.FullyConnected(tofu.sym.Variable("x"), num_hidden=6, name="fc"), name="r")
    found = Rules(net, {"x": (4, 8)})
    along = found.outputs(x=Shard(1), fc_weight=Shard(1), fc_bias=R)
    assert along == set(), "terms of a sum cannot be read by relu"
    assert found.outputs(x=R, fc_weight=Shard(0), fc_bias=Shard(0)) == {Shard(1)}


def test_a_window_does_not_split_without_a_halo() -> None:
    conv = tofu.sym.Convolution(
        tofu.sym.Variable("x"), kernel=(3, 3), pad=(1, 1), num_filter=6, no_bias=True, name="c"
    )
    found = Rules(conv, {"x": (2, 4, 8, 8)})
    assert found.outputs(x=Shard(2), c_weight=R) == set()
    assert found.outputs(x=Shard(1), c_weight=Shard(1)) == {TERMS}
    patches = tofu.sym.Convolution(
        tofu.sym.Variable("x"), kernel=(2, 2), stride=(2, 2), num_filter=6, no_bias=True, name="c"
    )
    assert Rules(patches, {"x": (2, 4, 8, 8)}).outputs(x=Shard(2), c_weight=R) == {Shard(2)}


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


def test_each_axis_of_a_mesh_is_used_in_its_own_way() -> None:
    x = tofu.sym.Variable("x")
    net = tofu.sym.FullyConnected(x, num_hidden=8, no_bias=True, name="fc")
    found = DescribedRules(tofu.inference_graph(net, {"x": (4, 8)}), (2, 2))

    def outputs(of_x: Any, of_weight: Any) -> set[Any]:
        return {made for (made,) in found.outputs({"x": of_x, "fc_weight": of_weight})}

    assert outputs((Shard(0), R), (R, Shard(0))) == {(Shard(0), Shard(1))}
    assert outputs((Shard(0), Shard(1)), (R, Shard(1))) == {(Shard(0), TERMS)}
    assert outputs((TERMS, R), (R, TERMS)) == {(TERMS, TERMS)}, "a product is linear in each input"
    assert outputs((TERMS, R), (TERMS, R)) == set(), "and not in both"
    assert outputs((Shard(0), Shard(0)), (R, R)) == {(Shard(0), Shard(0))}
    assert outputs((Shard(0), Shard(0)), (R, Shard(0))) == set()


def test_two_axes_that_cut_patches_make_terms_of_them() -> None:
    net = tofu.sym.Convolution(
        tofu.sym.Variable("x"), kernel=(2, 2), stride=(2, 2), num_filter=4, no_bias=True, name="c"
    )

    def outputs(height: int) -> set[Any]:
        graph = tofu.inference_graph(net, {"x": (2, 4, height, 8)})
        both = Shard(2), Shard(2)
        return DescribedRules(graph, (2, 2)).outputs({"x": both, "c_weight": (R, R)})

    assert outputs(8) == {((Shard(2), Shard(2)),)}
    assert outputs(4) == {((Shard(2), TERMS),)}, "four workers hold a row each, and a patch has two"


@pytest.mark.torch
def test_a_mesh_agrees_where_its_axes_do() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    inputs = torch.randn(4, 8), torch.randn(8, 4)
    found = assert_sharding(torch.mm, [[Shard(0), Shard(1)], [R, Shard(0)]], inputs, (2, 2))
    assert found.kind == "agreed"
    assert found.found.placements == ((Shard(0), TERMS),) == found.described[0]
    assert assert_sharding(torch.mm, [[TERMS, R], [R, TERMS]], inputs, (2, 2)).kind == "agreed"
    assert str(found).startswith("agreed: of [S(0), S(1)], [R, S(0)] DTensor gives [S(0), P(sum)]")
    with pytest.raises(AssertionError, match=r"unsound: of \[S\(1\), R\], \[S\(1\), R\] DTensor gives"):
        assert_sharding(
            torch.nn.functional.conv2d,
            [[Shard(1), R], [Shard(1), R]],
            [torch.randn(4, 6, 8, 8), torch.randn(6, 6, 3, 3)],
            (2, 2),
        )


@pytest.mark.torch
def test_gradients_of_products_agree_and_those_of_convolutions_are_wrong() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    inputs = torch.randn(4, 8), torch.randn(8, 6)
    found = assert_sharding(torch.mm, [Shard(0), R], inputs, gradients=True)
    assert found.kind == "agreed"
    assert found.found.heads == (Shard(0),)
    assert found.found.placements == (Shard(0), TERMS), "each worker has the gradient of its rows"
    assert survey_shardings(torch.mm, inputs, gradients=True).counts == {"agreed": 8, "moved": 8}
    pictures = torch.randn(4, 6, 8, 8), torch.randn(6, 6, 3, 3)
    with pytest.raises(AssertionError, match=r"unsound: of R, P\(sum\) DTensor gives gradients R, R"):
        assert_sharding(torch.nn.functional.conv2d, [R, TERMS], pictures, gradients=True)


@pytest.mark.torch
def test_what_threads_cannot_do_is_not_judged() -> None:
    torch = pytest.importorskip("torch")
    pictures, filters = torch.randn(4, 6, 8, 8), torch.randn(6, 6, 3, 3)

    def padded(x: Any, w: Any) -> Any:
        return torch.nn.functional.conv2d(x, w, padding=1)

    with pytest.raises(tofu.TofuError, match=r"unjudged: of S\(1\), S\(1\) DTensor refuses"):
        assert_sharding(padded, [Shard(1), Shard(1)], [pictures, filters], gradients=True)


@pytest.mark.torch
def test_a_backward_pass_without_a_rule_is_missing() -> None:
    torch = pytest.importorskip("torch")
    pictures = (torch.randn(4, 6, 8, 8),)

    def pooled(x: Any) -> Any:
        return torch.nn.functional.avg_pool2d(x, 2)

    assert assert_sharding(pooled, [Shard(0)], pictures).kind == "agreed"
    with pytest.raises(AssertionError, match=r"missing: of S\(0\) DTensor refuses .*avg_pool2d_backward"):
        assert_sharding(pooled, [Shard(0)], pictures, gradients=True)


@pytest.mark.torch
def test_numbers_and_indices_have_the_gradients_that_they_have() -> None:
    torch = pytest.importorskip("torch")
    x, table = torch.randn(4, 8), torch.randn(8, 6)
    total = assert_sharding(lambda x: x.square().sum(), [Shard(0)], [x], gradients=True)
    assert (total.kind, total.found.placements) == ("agreed", (Shard(0),))
    both = assert_sharding(lambda x: torch.max(x, 1), [Shard(0)], [x], gradients=True)
    assert both.kind == "agreed"
    rows = assert_sharding(
        torch.nn.functional.embedding, [Shard(0), R], [torch.arange(8).reshape(2, 4), table], gradients=True
    )
    assert rows.found.placements == (TERMS,)


@pytest.mark.torch
def test_workers_may_have_nothing() -> None:
    torch = pytest.importorskip("torch")
    found = assert_sharding(torch.relu, [[Shard(0), Shard(0)]], [torch.randn(3, 2)], (2, 2)).found
    assert (found.placements, found.difference) == (((Shard(0), Shard(0)),), 0)


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
    for sizes in ((), (2, 1), (2, True), [2, "2"]):
        with pytest.raises(tofu.TofuError, match="the number of workers is"):
            assert_sharding(torch.relu, [[R, R]], [x], workers=sizes)
    for name, call in (("placements", (None, [x])), ("inputs", ([R], None)), ("inputs", ([R], [x.numpy()]))):
        with pytest.raises(tofu.TofuError, match=f"the {name} are .*; give a list"):
            assert_sharding(torch.relu, *call)
    with pytest.raises(tofu.TofuError, match="a tensor of 2 dimensions"):
        assert_sharding(torch.relu, [Shard(2)], [x])
    with pytest.raises(tofu.TofuError, match="terms of a sum, and not"):
        assert_sharding(torch.relu, [Unreduced("max")], [x])
    for op, given in ((lambda x: torch.argmax(x, 1), x), (torch.neg, torch.arange(8))):
        with pytest.raises(tofu.TofuError, match="no gradients"):
            assert_sharding(op, [Shard(0)], [given], gradients=True)
    for placements in ([R], [[R]], [[R, "R"]], [[R, R, R]]):
        with pytest.raises(tofu.TofuError, match="for each of the 2 axes of the mesh"):
            assert_sharding(torch.relu, placements, [x], workers=(2, 2))
    with pytest.raises(tofu.GraphError, match="no description"):
        survey_shardings(torch.special.bessel_j0, [x])

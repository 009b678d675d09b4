"""einsum, cumsum, attention, rotary positions, positions in tensors and experts, against NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tofu.errors import OperatorError, ShapeError
from tofu.operators import get

RNG = np.random.default_rng(26)


def computed(name: str, tensors: Mapping[str, np.ndarray], **attributes: object) -> np.ndarray:
    (result,) = get(name).bind({n: a.shape for n, a in tensors.items()}, **attributes).compute(tensors)
    return result


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bhqd, bhkd -> bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("i,ij,j,k->k", [(3,), (3, 4), (4,), (2,)]),
        ("ii->i", [(3, 3)]),
        ("...ij->...ji", [(2, 3, 4, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("...i,...i", [(2, 3), (3,)]),
        ("ij->", [(2, 3)]),
    ],
)
def test_einsum(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [RNG.normal(size=shape) for shape in shapes]
    tensors = {f"arg{k}": array for k, array in enumerate(arrays)}
    found = computed("einsum", tensors, subscripts=subscripts, num_args=len(arrays))
    np.testing.assert_allclose(found, np.atleast_1d(np.einsum(subscripts, *arrays)), rtol=1e-12)


def test_products_of_einsum_are_stages_that_split_over_every_letter() -> None:
    shapes = {"arg0": (2, 3), "arg1": (3, 4), "arg2": (4, 5)}
    operator = get("einsum")
    attributes = operator.attributes({"subscripts": "ij,jk,kl->il", "num_args": 3})
    first, last = operator.stages(attributes, shapes)
    assert [s.variable for s in first.bind(shapes).strategies] == ["v_i", "v_k", "v_j"]
    shapes |= {"product1": (2, 4)}
    assert [(s.variable, s.kind) for s in last.bind(shapes).strategies] == [
        ("v_i", "concat"),
        ("v_l", "concat"),
        ("v_k", "reduce"),
    ]


@pytest.mark.parametrize(
    ("subscripts", "message"),
    [
        ("ij->ij", "they name 1 operands, but 2 are given"),
        ("ij,->ij", "an operand without letters is a number"),
        ("i1,jk->ik", "'i1' must be letters, with at most one '...'"),
        ("......,jk->jk", "'......' must be letters"),
        ("ij,jk->il", "'l' must be in an operand"),
        ("ij,jk->ii", "'i' must be in an operand, and only once"),
        ("...j,jk->k", "write '...' in the result"),
        ("ij,jk->...ik", "write '...' in the result if an operand has it, and only then"),
        ("...ijk,jk->...i", "'...ijk' does not fit an operand with 2 dimensions"),
    ],
)
def test_einsum_refuses_subscripts_that_do_not_fit(subscripts: str, message: str) -> None:
    with pytest.raises(OperatorError) as raised:
        get("einsum").bind({"arg0": (2, 3), "arg1": (3, 4)}, subscripts=subscripts, num_args=2)
    assert message in str(raised.value)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumsum(axis: int) -> None:
    data = RNG.normal(size=(2, 3, 4))
    np.testing.assert_allclose(computed("cumsum", {"data": data}, axis=axis), data.cumsum(axis))


@pytest.mark.parametrize("extent", [2, 3, 4, 40])
@pytest.mark.parametrize("last", [np.inf, np.nan])
def test_cumsum_reads_nothing_that_comes_later(extent: int, last: float) -> None:
    data = np.ones((extent, 3))
    data[-1, 1] = last
    for axis, values in ((0, data), (1, data.T.copy())):
        np.testing.assert_array_equal(computed("cumsum", {"data": values}, axis=axis), values.cumsum(axis))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(groups: int) -> None:
    data, gamma, beta = RNG.normal(size=(2, 4, 3, 2)), RNG.normal(size=4), RNG.normal(size=4)
    found = computed("GroupNorm", {"data": data, "gamma": gamma, "beta": beta}, num_groups=groups)
    grouped = data.reshape(2, groups, -1)
    normal = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    channel = (slice(None), None, None)
    np.testing.assert_allclose(found, gamma[channel] * normal.reshape(data.shape) + beta[channel])


@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_norm(axis: int) -> None:
    data = RNG.normal(size=(2, 3, 4))
    gamma = RNG.normal(size=data.shape[axis])
    shape = [-1 if place == axis % 3 else 1 for place in range(3)]
    expected = data / np.sqrt((data**2).mean(axis, keepdims=True) + 1e-6) * gamma.reshape(shape)
    np.testing.assert_allclose(computed("RMSNorm", {"data": data, "gamma": gamma}, axis=axis), expected)


@pytest.mark.parametrize(("causal", "window"), [(False, 0), (True, 0), (True, 2), (True, 9)])
@pytest.mark.parametrize("keys", [4, 6])
def test_attention_with_shared_heads(causal: bool, window: int, keys: int) -> None:
    query, key, value = (RNG.normal(size=(2, heads, n, 3)) for heads, n in ((4, 4), (2, keys), (2, keys)))
    tensors = {"query": query, "key": key, "value": value}
    found = computed("attention", tensors, causal=causal, window=window, scale=0.5)
    back = np.arange(4)[:, None] + keys - 4 - np.arange(keys)
    seen = (back >= 0) & (back < (window or keys)) if causal else np.full((4, keys), True)
    scores = 0.5 * query @ key.repeat(2, 1).swapaxes(2, 3)
    expected = softmax(np.where(seen, scores, -np.inf)) @ value.repeat(2, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_worker_reads_only_the_keys_of_its_window() -> None:
    shapes = {"query": (1, 2, 64, 3), "key": (1, 2, 64, 3), "value": (1, 2, 64, 3)}
    bound = get("attention").bind(shapes, window=8)
    strategy = next(each for each in bound.strategies if each.variable == "i")
    regions = strategy.input_regions(worker=2, workers=4)
    assert regions["query"][2] == (32, 48)
    assert regions["key"][2] == (25, 48)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding_rotates_pairs_of_features(interleaved: bool) -> None:
    data, angle = RNG.normal(size=(2, 3, 5, 6)), RNG.normal(size=(5, 3))
    tensors = {"data": data, "cosine": np.cos(angle), "sine": np.sin(angle)}
    found = computed("rotary_embedding", tensors, interleaved=interleaved)
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, 3), slice(3, 6))
    turned = (data[..., first] + 1j * data[..., second]) * np.exp(1j * angle)
    np.testing.assert_allclose(found[..., first], turned.real)
    np.testing.assert_allclose(found[..., second], turned.imag)


def test_gather_and_scatter_by_position() -> None:
    data, indices = RNG.normal(size=(3, 4, 2)), np.array([[0, 2, 0, 1], [3, 1, 3, 0]])
    taken = computed("gather_nd", {"data": data, "indices": indices})
    np.testing.assert_array_equal(taken, data[indices[0], indices[1]])
    expected = np.zeros((3, 4, 2))
    np.add.at(expected, (indices[0], indices[1]), taken)
    given = {"data": taken, "indices": indices}
    np.testing.assert_allclose(computed("scatter_nd", given, shape=(3, 4, 2)), expected)


def test_experts_take_tokens_in_their_order_up_to_their_capacity() -> None:
    expert = np.array([[0, 1], [0, 2], [0, 1], [1, 0], [0, 2]])
    data, gate = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
    places = np.zeros((3, 2, 3))
    combined, used = np.zeros((5, 3)), [0, 0, 0]
    for token, choice in np.ndindex(expert.shape):
        chosen = expert[token, choice]
        if used[chosen] < 2:
            places[chosen, used[chosen]] = data[token]
            combined[token] += gate[token, choice] * data[token]
        used[chosen] += 1
    assert used == [5, 3, 2]
    given = {"data": data, "expert": expert}
    np.testing.assert_array_equal(computed("moe_dispatch", given, experts=3, capacity=2), places)
    given = {"data": places, "expert": expert, "gate": gate}
    np.testing.assert_allclose(computed("moe_combine", given), combined)


def test_experts_are_split_among_workers() -> None:
    bound = get("moe_dispatch").bind({"data": (8, 3), "expert": (8, 2)}, experts=4, capacity=2)
    assert [(s.variable, s.kind) for s in bound.strategies] == [
        ("e", "concat"),
        ("c", "concat"),
        ("d", "concat"),
        ("t", "reduce"),
        ("k", "reduce"),
    ]


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "message"),
    [
        ("GroupNorm", {"data": (2, 4), "gamma": (4,), "beta": (4,)}, {"num_groups": 3}, "4 channels"),
        (
            "attention",
            {"query": (1, 3, 2, 2), "key": (1, 2, 2, 2), "value": (1, 2, 2, 2)},
            {},
            "3 heads of queries cannot share 2 heads of keys",
        ),
        (
            "attention",
            {"query": (1, 2, 3, 2), "key": (1, 2, 2, 2), "value": (1, 2, 2, 2)},
            {"window": 2},
            "there are 2 keys for 3 queries",
        ),
        (
            "rotary_embedding",
            {"data": (2, 3, 5), "cosine": (3, 2), "sine": (3, 2)},
            {},
            "an even number of features",
        ),
        ("gather_nd", {"data": (3,), "indices": (2, 4)}, {}, r"indices has shape \(2, 4\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    name: str, shapes: dict[str, tuple[int, ...]], attributes: dict[str, object], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        get(name).bind(shapes, **attributes)

"""ATen operators that read and write at places, sample, order and compare, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import GraphError

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

from .agreement import by_tofu, require_agreement  # noqa: E402

F = torch.nn.functional
TWICE = torch.tensor([[0, 2], [2, 2], [1, 0]])
"""Places of which some are named twice in a row."""
ONCE = torch.tensor([[3, 0], [1, 2], [0, 3]])
ZEROS = torch.tensor([[0.0, 1], [0, 0], [1, 0]])
"""Zeros alone at a place, and next to others."""
ROWS = torch.tensor([2, 0])
COLUMNS = torch.tensor([True, False, False, True])
SET = torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]]) > 0
WHOLE = torch.arange(1.0, 13).reshape(3, 4)


class OfTable(torch.nn.Module):
    """A function of a parameter of [3, 4] and one of [3, 2]."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function
        self.table = torch.nn.Parameter(torch.randn(3, 4))
        self.rows = torch.nn.Parameter(torch.randn(3, 2))

    def forward(self, one: Any) -> Any:
        return self.function(self.table * one, self.rows * one)


def _assigned(table: Any, rows: Any) -> Any:
    found = table.clone()
    found[:, 0] = 2.0
    found[1:, 1:3] = rows[:2]
    found[found > 1] = 0.5
    return found


def _cast_by_assignments(table: Any, rows: Any) -> Any:
    whole, truth = torch.zeros(3, 4, dtype=torch.long), torch.zeros(3, 4, dtype=torch.bool)
    whole[:, :2] = rows * 3
    whole[1] = 1.7
    truth[:, 1:3] = rows.floor()
    truth[:, 3] = whole[:, 0]
    return whole * table + truth * 2 * table


def _of_whole_numbers(table: Any, rows: Any) -> Any:
    whole, truth = (table * 3).long(), table > 0
    filled = whole.masked_fill(truth, 2.7) * whole.scatter(1, TWICE, -1.5) + F.pad(whole, (1, -1), value=1.6)
    means = whole.scatter_reduce(1, TWICE, (rows * 5).long(), "mean")
    means += whole.scatter_reduce(1, TWICE, (rows * 5).long(), "mean", include_self=False)
    either = truth.scatter_add(1, TWICE, rows > -1).index_put((ROWS,), truth[1:], accumulate=True)
    return (filled + means + either) * table


def _masked(table: Any, rows: Any) -> Any:
    found = table.clone()
    found[:, COLUMNS] = rows
    found[:, table[1] > 1] = 0.5
    found[SET] = rows[:, 0].repeat(2)
    return found * table


def _selected(table: Any, rows: Any) -> Any:
    others = (table[:, :3] @ table[:, 1:].T)[~torch.eye(3, dtype=torch.bool)].view(3, -1).softmax(1)
    wide = table[:, COLUMNS].reshape(-1) * torch.arange(6.0)
    named = table.repeat_interleave(torch.tensor([0, 2, 1, 1]), dim=1)
    return torch.cat([others.flatten(), wide, table.masked_select(COLUMNS), named[SET]])


def _by_a_mask_of_data(table: Any, rows: Any) -> Any:
    """Write two rows where rows that depend on data are, as embeddings of images between those of words."""
    found = table.clone()
    found[table[:, 0] > table[:, 0].min()] = rows.reshape(2, 3).repeat(1, 2)[:, :4]
    return found * table


def _with_other_diagonals(table: Any, rows: Any) -> Any:
    found = table.clone()
    found.diagonal(1).copy_(rows[:, 0])
    found.diagonal(-2).mul_(3)
    return found * table


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "scatter": lambda a, b: a.scatter(1, ONCE, b),
    "scatter below": lambda a, b: a.scatter(0, torch.tensor([[2, 0]]), b[:1]),
    "scatter a number": lambda a, b: a.scatter(1, TWICE, 0.5),
    "scatter_add": lambda a, b: a.scatter_add(1, TWICE, b),
    "scatter_add fewer rows": lambda a, b: a.scatter_add(1, TWICE[:2], b[:2]),
    "scatter_reduce greatest": lambda a, b: a.scatter_reduce(1, TWICE, b, "amax"),
    "scatter_reduce product": lambda a, b: a.scatter_reduce(1, TWICE, b, "prod", include_self=False),
    "scatter_reduce product with data": lambda a, b: a.scatter_reduce(1, TWICE, b, "prod"),
    "scatter_reduce product of fewer rows": lambda a, b: a.scatter_reduce(1, TWICE[:2], b[:2], "prod"),
    "scatter_reduce product of a larger tensor": lambda a, b: (
        a * WHOLE.scatter_reduce(0, ROWS[None], WHOLE, "prod")
    ),
    "scatter_reduce product of zeros": lambda a, b: a.scatter_reduce(1, TWICE, b * ZEROS, "prod"),
    "scatter_reduce mean": lambda a, b: a.scatter_reduce(1, TWICE, b, "mean"),
    "index_add": lambda a, b: a.index_add(1, ROWS, b),
    "index_copy": lambda a, b: a.index_copy(0, ROWS, a[1:] * 2),
    "index_fill": lambda a, b: a.index_fill(1, ROWS, 3.0),
    "index_put of two": lambda a, b: a.index_put((ROWS, torch.tensor([-1, 1])), b[0]),
    "index_put adds": lambda a, b: a.index_put((torch.tensor([1, 1]),), a[:2], accumulate=True),
    "assignments": _assigned,
    "writes to whole numbers and truth values": _of_whole_numbers,
    "assignments to masks": _masked,
    "places of constant masks": _selected,
    "masked_scatter": lambda a, b: a.masked_scatter(b[:, :1] > 0, torch.cat([b, b], 1)) * a,
    "masked_scatter of a larger tensor": lambda a, b: a[:, :1].masked_scatter(SET, b.repeat(2, 2)),
    "masked_scatter by places of all dimensions": lambda a, b: a.masked_scatter(a > a.mean(), a.flip(0)),
    "assignments to a mask of data": _by_a_mask_of_data,
    "assignments to diagonals": _with_other_diagonals,
    "diagonals of a batch": lambda a, b: torch.diagonal_scatter(a.reshape(2, 3, 2), b[:2], 1, 0, 1),
    "fill_diagonal_": lambda a, b: (
        (a @ a.T).fill_diagonal_(-inf).softmax(1) @ (a * a).fill_diagonal_(2, True)
    ),
    "assignments that cast": _cast_by_assignments,
    "embedding_bag sum": lambda a, b: F.embedding_bag(TWICE, a, mode="sum"),
    "embedding_bag mean without padding": lambda a, b: F.embedding_bag(TWICE, a, mode="mean", padding_idx=0),
    "embedding_bag greatest": lambda a, b: F.embedding_bag(TWICE, a, mode="max"),
    "embedding_bag of other sizes": lambda a, b: F.embedding_bag(TWICE.flatten(), a, torch.tensor([0, 1, 4])),
    "embedding_bag with weights": lambda a, b: F.embedding_bag(TWICE, a, mode="sum", per_sample_weights=b),
    "cdist": lambda a, b: torch.cdist(a, a[:2] + 1),
    "cdist of itself": lambda a, b: torch.cdist(a, a),
    "cdist of sums": lambda a, b: torch.cdist(a, a[:2] + 1, p=1),
    "cdist of cubes": lambda a, b: torch.cdist(a[None], torch.stack([a, a + 1]), p=3),
    "cdist of roots": lambda a, b: torch.cdist(a, a, p=0.5),
    "cdist of differences": lambda a, b: torch.cdist(a, a.round(), p=0) * a[:, :3],
    "bucketize": lambda a, b: torch.bucketize(a, torch.tensor([-1.0, 0, 1])) * a,
    "searchsorted": lambda a, b: torch.searchsorted(a.sort().values, b, right=True) * b,
    "searchsorted of a number": lambda a, b: torch.searchsorted(a.sort().values[0], 0.5) * b,
    "cummax": lambda a, b: a.cummax(1).values,
    "cummin": lambda a, b: a.cummin(0).values,
    "logcumsumexp": lambda a, b: a.logcumsumexp(1),
    "median": lambda a, b: a.median(1).values,
    "kthvalue": lambda a, b: a.kthvalue(2, 0, keepdim=True).values,
    "kthvalue without dimensions": lambda a, b: a.sum().kthvalue(1, keepdim=True).values * b,
    "multilabel_margin_loss of a number": lambda a, b: F.multilabel_margin_loss(a[0, 0], torch.tensor(0)) * b,
    "gather without dimensions": lambda a, b: (
        a.sum().gather(0, torch.zeros(2, dtype=torch.long)) * b + a[0, :1].gather(0, torch.tensor(0))
    ),
    "gather of fewer rows": lambda a, b: a.gather(1, TWICE[:2]),
    "gather of fewer columns": lambda a, b: a.gather(0, ROWS[None]),
    "index_select of one place": lambda a, b: a.index_select(1, torch.tensor(2)),
    "embedding of a row of padding": lambda a, b: F.embedding(torch.tensor(1), a, padding_idx=1) * a[0],
    "movedim without dimensions": lambda a, b: a.sum().movedim(0, -1) * b,
    "reductions without dimensions": lambda a, b: (
        (torch.linalg.vector_norm(a.sum(), 3, dim=0) + a.sum().logsumexp(0) + a.mean().var(correction=0)) * b
        + (a.sum().amax() + a.sum().prod() + a.sum().norm() + a.sum().max(0).values + a.sum().argmin()) * b
    ),
    "linear of vectors": lambda a, b: F.linear(a, a[0]) * F.linear(b[0], b[1]),
    "parts without elements": lambda a, b: torch.cat([a[:, 4:], a * 2, a[:, :0]], 1),
    "fold": lambda a, b: F.fold(a[None].repeat(1, 3, 1).reshape(1, 9, 4)[:, :9], 4, 3, stride=2, padding=1),
    "rrelu": lambda a, b: F.rrelu(a, training=False),
    "instance_norm of statistics": lambda a, b: F.instance_norm(
        a[None], torch.ones(3), torch.arange(1.0, 4.0), use_input_stats=False
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_places(name: str) -> None:
    torch.manual_seed(0)
    require_agreement(OfTable(CASES[name]), torch.ones(()))


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_images_are_read_between_pixels(mode: str, padding: str, corners: bool) -> None:
    torch.manual_seed(0)

    def sampled(a: Any, b: Any) -> Any:
        image = torch.stack([a, a * 2, a * a])[None]
        grid = torch.stack([b, b.flip(0) * 0.7], -1)[None]
        return F.grid_sample(image, grid, mode, padding, corners)

    require_agreement(OfTable(sampled), torch.ones(()))


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_volumes_are_read_between_pixels(mode: str, padding: str, corners: bool) -> None:
    torch.manual_seed(0)

    def sampled(a: Any, b: Any) -> Any:
        volume = torch.stack([a, a * 2, a * a])[None, None]
        grid = torch.stack([b, b.flip(0) * 0.7, b.flip(1) * 1.6], -1)[None, None]
        return F.grid_sample(volume, grid, mode, padding, corners)

    require_agreement(OfTable(sampled), torch.ones(()))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_an_image_of_one_row_is_read_between_pixels(padding: str) -> None:
    torch.manual_seed(0)

    def sampled(a: Any, b: Any) -> Any:
        grid = torch.stack([b, b.flip(0) * 0.7], -1)[None]
        return F.grid_sample(a[None, None, :1], grid, "bilinear", padding, True)

    require_agreement(OfTable(sampled), torch.ones(()), workers=[1, 3])


POOLS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: F.max_pool1d(a, 2, return_indices=True),
    "overlapping and padded": lambda a: F.max_pool2d(a[None], (2, 3), (1, 2), (1, 1), return_indices=True),
    "dilated": lambda a: F.max_pool2d(a[None], 2, 1, 0, (1, 2), return_indices=True),
    "last windows cut": lambda a: F.max_pool2d(a[None, None], 2, ceil_mode=True, return_indices=True),
    "equal elements": lambda a: F.max_pool2d((a * 0)[None], 2, 1, return_indices=True),
    "adaptive": lambda a: F.adaptive_max_pool2d(a[None], (2, 3), return_indices=True),
    "adaptive rows": lambda a: F.adaptive_max_pool1d(a, 2, return_indices=True),
    "space": lambda a: F.max_pool3d(a.reshape(1, 1, 3, 2, 2), 2, 1, return_indices=True),
}


@pytest.mark.parametrize("name", POOLS)
def test_places_of_maxima(name: str) -> None:
    torch.manual_seed(0)

    def placed(a: Any, b: Any) -> Any:
        values, places = POOLS[name](a)
        return values * (places + 1)

    require_agreement(OfTable(placed), torch.ones(()))


def _unpooled(a: Any, kernel: Any, **options: Any) -> Any:
    values, places = F.max_pool2d(a[None], kernel, return_indices=True, **options)
    return F.max_unpool2d(values * values, places, kernel, output_size=a.shape, **options)


UNPOOLS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: F.max_unpool1d(*F.max_pool1d(a, 2, return_indices=True), 2),
    "image": lambda a: _unpooled(a, (1, 2)),
    "space": lambda a: F.max_unpool3d(
        *F.max_pool3d(a.reshape(1, 1, 3, 2, 2), (1, 2, 1), return_indices=True), (1, 2, 1)
    ),
}


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize("name", UNPOOLS)
def test_maxima_are_written_back_to_their_places(name: str, workers: int) -> None:
    torch.manual_seed(0)
    require_agreement(OfTable(lambda a, b: UNPOOLS[name](a)), torch.ones(()), workers=[workers])


@pytest.mark.parametrize(
    "name", ["scatter_add", "assignments", "masked_scatter", "embedding_bag greatest", "cdist", "median"]
)
def test_places_on_8_workers(name: str) -> None:
    torch.manual_seed(0)
    require_agreement(OfTable(CASES[name]), torch.ones(()), workers=[8])


DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda a: torch.rand(3, 4),
    "randn": torch.randn_like,
    "bernoulli": lambda a: torch.bernoulli(torch.full_like(a, 0.5)),
    "drop path": lambda a: (torch.rand(3, 4) + 0.5).floor(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_the_same_on_each_number_of_workers(name: str) -> None:
    module = OfTable(lambda a, b: a + DRAWS[name](a))
    symbol, parameters = tofu.from_torch(module, torch.ones(()))
    feeds = {"one": np.ones(1, "float32")}
    one, eight = (by_tofu(symbol, parameters, feeds, workers).outputs[0] for workers in (1, 8))
    assert (one == eight).all()
    assert len(np.unique(one - module.table.detach().numpy())) > 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: a.index_reduce(1, ROWS, b, "mean"), "index_reduce"),
    ],
)
def test_what_is_not_described_is_named(function: Callable[[Any, Any], Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        tofu.from_torch(OfTable(function), torch.ones(()))

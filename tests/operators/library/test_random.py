"""Random tensors: distributions, and the same numbers however a tensor is split."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu import sym
from tofu.operators import get

SEEDS = {"seed": np.array([5.0]), "angle_seed": np.array([9.0])}


def drawn(name: str, shape: tuple[int, ...], seed: float = 5, **attributes: float) -> np.ndarray:
    operator = get(name)
    seeds = {key: SEEDS[key] + seed for key in operator.seeds}
    bound = operator.bind(dict.fromkeys(seeds, (1,)), shape=shape, **attributes)
    return bound.compute(seeds)[0]


def test_uniform_fills_its_interval_evenly() -> None:
    numbers = drawn("random_uniform", (300, 200), low=-1, high=3)
    counts, _ = np.histogram(numbers, bins=8, range=(-1, 3))
    assert counts.sum() == numbers.size
    assert np.abs(counts / numbers.size - 1 / 8).max() < 0.01


def test_normal_has_its_moments_and_quantiles() -> None:
    numbers = (drawn("normal", (400, 200), loc=2, scale=3) - 2) / 3
    assert abs(numbers.mean()) < 0.02
    assert abs(numbers.std() - 1) < 0.02
    assert np.abs(np.quantile(numbers, [0.1587, 0.8413, 0.9772]) - [-1, 1, 2]).max() < 0.03


def test_exponential_has_its_moments() -> None:
    numbers = drawn("random_exponential", (300, 200), lam=4)
    assert numbers.min() > 0
    assert abs(numbers.mean() * 4 - 1) < 0.02
    assert abs(numbers.std() * 4 - 1) < 0.03


@pytest.mark.parametrize("name", ["random_uniform", "random_normal", "random_exponential"])
def test_seeds_decide(name: str) -> None:
    np.testing.assert_array_equal(drawn(name, (4, 5)), drawn(name, (4, 5)))
    assert (drawn(name, (4, 5)) != drawn(name, (4, 5), seed=6)).all()


def test_aliases_are_those_of_both_dialects() -> None:
    for alias in ("normal", "_random_normal", "_sample_normal"):
        assert get(alias) is get("random_normal")


def test_partitioned_runs_draw_the_same_numbers_and_others_each_time() -> None:
    with sym.NameScope():
        drawn_twice = [sym.random_normal(shape=(30, 16)), sym.uniform(shape=(0, 8)) + sym.Variable("x")]
    symbol = tofu.mx.sym.Group(drawn_twice)
    found = []
    for workers in (1, 3):
        context = [tofu.cpu(worker) for worker in range(workers)]
        with symbol.simple_bind(context, grad_req="null", x=(12, 8)) as bound:
            drawn = [output.asnumpy() for _ in range(2) for output in bound.forward()]
            found.append(drawn)
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)
    assert (found[0][0] != found[0][2]).all()

"""Choices over all steps at once, for methods that do not go step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .network import Network
from .tables import OperatorChoices, TensorChoices, operator_choices, splittable, tensor_choices

Sequences = Callable[[Mapping[Any, int], tuple[int, ...]], Sequence[Any]]
"""The sequences of labels that extents allow for the steps' factors, such as `all_sequences`."""


def joint_choices(
    network: Network, factors: tuple[int, ...], sequences: Sequences
) -> tuple[list[OperatorChoices], list[TensorChoices]]:
    """Every operator's and tensor's sequences, with their regions; equal ones are worked out once."""
    of_bound = {
        bound: operator_choices(bound, sequences(splittable(bound), factors), factors)
        for bound in dict.fromkeys(network.operators)
    }
    of_shape = {
        shape: tensor_choices(shape, sequences(dict(enumerate(shape)), factors), factors)
        for shape in dict.fromkeys(network.shapes)
    }
    return [of_bound[bound] for bound in network.operators], [of_shape[shape] for shape in network.shapes]

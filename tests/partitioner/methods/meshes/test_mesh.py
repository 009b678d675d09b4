"""Meshes: what users write, and which steps lie within groups."""

from __future__ import annotations

from math import prod

import pytest

from tofu import PlanError
from tofu.partitioner.layouts.step_split import prime_factors
from tofu.partitioner.methods.meshes.mesh import Mesh, meshes, parse_mesh


@pytest.mark.parametrize("workers", [1, 2, 6, 8, 12, 30, 64])
def test_every_mesh_is_read_back_and_has_its_steps(workers):
    for mesh in meshes(workers):
        assert parse_mesh(str(mesh), workers) == mesh
        assert parse_mesh(f"dp{mesh.data}-tp{mesh.tensor}", workers) == mesh
        steps = list(zip(prime_factors(workers), mesh.within, strict=True))
        assert prod(factor for factor, within in steps if within) == mesh.tensor
        assert prod(factor for factor, within in steps if not within) == mesh.data


def test_groups_are_neighbours():
    assert Mesh(4, 2).within == (False, False, True)
    assert Mesh(2, 3).within == (True, False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no mesh ''; write the number of groups"),
        ("dp4tp2", "there is no mesh 'dp4tp2'"),
        ("dp4-", "there is no mesh 'dp4-'"),
        ("tp2-dp4", "there is no mesh 'tp2-dp4'"),
        ("dp0-tp8", "there is no mesh 'dp0-tp8'"),
        ("pp8", "there is no mesh 'pp8'.* one of dp8, dp4-tp2, dp2-tp4, tp8"),
        ("dp\u0664-tp2", "there is no mesh"),
        ("dp2-tp2", "has 2 x 2 = 4 workers, but the plan is for 8; choose one of dp8, dp4-tp2"),
        ("dp4", "has 4 x 1 = 4 workers, but the plan is for 8"),
        ("dp99999-tp99999", "but the plan is for 8"),
    ],
)
def test_other_texts_are_refused(text, says):
    with pytest.raises(PlanError, match=says):
        parse_mesh(text, 8)

"""Names of the library."""

from __future__ import annotations

import pytest

from tofu import tdl
from tofu.errors import OperatorError
from tofu.operators import aliases, get, names


def test_aliases_give_the_same_operator() -> None:
    assert get("_plus") is get("_Plus") is get("elemwise_add")
    assert get("identity") is get("_copy")
    assert get("split") is get("SliceChannel")
    assert aliases()["ElementWiseSum"] == "add_n"
    assert set(aliases().values()) == set(names())


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(OperatorError, match="no operator 'Convolutoin'; did you mean 'Convolution'"):
        get("Convolutoin")
    with pytest.raises(OperatorError, match="see `tofu operators`"):
        get("zzzz")


@pytest.mark.parametrize("name", names())
def test_every_operator_shows_a_description_that_parses_to_itself(name: str) -> None:
    text = str(get(name))
    assert tdl.format(tdl.parse(text)) == text


@pytest.mark.parametrize("name", names())
def test_every_example_fits_the_operator(name: str) -> None:
    operator = get(name)
    example = operator.example
    assert example is not None
    attributes = operator.attributes(example.attributes)
    read = {name for stage in operator.stages(attributes, example.shapes) for name in stage.inputs}
    seeds = read.intersection(operator.seeds)
    assert set(example.shapes) == {*operator.arguments(attributes), *operator.auxiliary, *seeds}
    inferred = operator.infer(attributes, example.shapes)
    assert set(inferred) == {
        *operator.arguments(attributes),
        *operator.auxiliary,
        *operator.outputs(attributes),
    }
    assert all(shape is not None and None not in shape for shape in inferred.values())

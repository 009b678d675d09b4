"""Plans in files that people write: what they mean, and what is said of those that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.errors import PlanError
from tofu.partitioner.layouts.copies import Copy
from tofu.partitioner.layouts.forms import At, Cut, Follow, Form, Parts, Spread
from tofu.partitioner.plans.form_document import encode_form
from tofu.partitioner.plans.written_plan import WrittenPlan, decode_written_plan, read_written_plan

from ...hangs import no_hang

EVERYWHERE = (None, None)

FORMS: list[tuple[str, Form]] = [
    ("everywhere", EVERYWHERE),
    ("null", EVERYWHERE),
    ("n", ("n", "n")),
    ("[n, null]", ("n", None)),
    ("[{at: 1}, n]", (At(1), "n")),
    ("{worker: 3}", Spread((), (3,))),
    ("{workers: [0, 3]}", Spread(((None, 2),), (0, 3))),
    ("{along: n}", Spread((("n", 4),), (0, 1, 2, 3))),
    ("{along: n, workers: [2, 0, 2, 0]}", Spread((("n", 4),), (2, 0, 2, 0))),
    ("{spread: [[n, 2], [null, 2]]}", Spread((("n", 2), (None, 2)), (0, 1, 2, 3))),
    ("{spread: [[n, 2]], workers: [1, 3]}", Spread((("n", 2),), (1, 3))),
    ("{cut: n, bounds: [1, 2, 3]}", Cut("n", (1, 2, 3), (0, 1, 2, 3))),
    ("{cut: n, bounds: [5], workers: [1, 0]}", Cut("n", (5,), (1, 0))),
    ("{parts: [[0, [[0, 4], [0, 8]]]]}", Parts(((0, ((0, 4), (0, 8))),))),
    ("follow", Follow()),
]


@pytest.mark.parametrize(("text", "form"), FORMS)
def test_every_form_can_be_written(text: str, form: Form, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"operations:\n  a*: {text}\n")
    assert read_written_plan(path, 4) == WrittenPlan({}, {"a*": form}, {}, None)


_workers = st.integers(0, 3)
_labels = st.sampled_from(["i", "j", "everything"])
_degrees = st.lists(st.tuples(st.none() | _labels, st.integers(1, 5)), max_size=3).map(tuple)
_intervals = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda ends: (min(ends), max(ends)))
_forms = st.one_of(
    st.lists(st.none() | _labels | st.builds(At, st.integers(0, 3)), max_size=3).map(tuple),
    st.builds(Spread, _degrees, st.lists(_workers, max_size=6).map(tuple)),
    st.builds(
        Cut, _labels, st.lists(st.integers(0, 99), max_size=3).map(tuple), st.lists(_workers).map(tuple)
    ),
    st.builds(Parts, st.lists(st.tuples(_workers, st.lists(_intervals).map(tuple))).map(tuple)),
    st.just(Follow()),
)


@given(st.dictionaries(st.text(min_size=1, max_size=4), _forms, max_size=3))
def test_forms_of_plan_files_and_of_python_mean_the_same(forms: dict[str, Form]) -> None:
    """A person may copy them from a plan file."""
    of_file = json.loads(json.dumps({name: encode_form(form) for name, form in forms.items()}))
    written = decode_written_plan({"operations": of_file}, 4)
    assert written.operations == forms
    assert decode_written_plan({"operations": forms}, 4) == written


def test_all_sections(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        """
workers: 4
operations: {"*": everywhere}
tensors: {data: 0, "*": {along: 1}}
copies:
  fc1_weight:
    - {form: everywhere, readers: [fc1.product]}
    - {form: {worker: 2}, readers: ["fc1.*", b], source: 1}
order: [b, "*"]
"""
    )
    expected = WrittenPlan(
        {"data": (0, 0), "*": Spread(((1, 4),), (0, 1, 2, 3))},
        {"*": EVERYWHERE},
        {"fc1_weight": [Copy(EVERYWHERE, ("fc1.product",)), Copy(Spread((), (2,)), ("fc1.*", "b"), 1)]},
        ("b", "*"),
    )
    assert read_written_plan(path, 4) == expected
    copies = {"fc1_weight": expected.copies["fc1_weight"]}
    in_python = {"operations": {"*": EVERYWHERE}, "tensors": dict(expected.tensors), "copies": copies}
    assert decode_written_plan(in_python | {"order": ["b", "*"]}, 4) == expected


def test_a_document_without_sections_is_about_tensors(tmp_path: Path) -> None:
    layouts = {"a": 0, "b_*": [0, None], "c": None}
    (tmp_path / "layouts.json").write_text(json.dumps(layouts))
    (tmp_path / "layouts.yaml").write_text("a: 0\nb_*: [0, null]\nc: null\n")
    expected = WrittenPlan({"a": (0, 0), "b_*": (0, None), "c": EVERYWHERE}, None, {}, None)
    assert read_written_plan(tmp_path / "layouts.json", 4) == expected
    assert read_written_plan(tmp_path / "layouts.yaml", 4) == expected
    assert decode_written_plan({"tensors": layouts}, 4) == expected


OF_OPERATIONS: list[tuple[Any, str]] = [
    ({"*": 0}, 'operations["*"] is 0; it must be a string'),
    ({"*": True}, 'operations["*"] is true; it must be a string'),
    ({"*": 1.5}, 'operations["*"] is 1.5; it must be a string'),
    ({"*": [["n"]]}, 'operations["*"][0] is a list; it must be a string'),
    ({"*": {}}, 'operations["*"] has none of "worker", "workers", "along"'),
    ({"*": {"spreads": []}}, 'operations["*"] has none of "worker"'),
    ({"*": {"worker": 4}}, 'operations["*"].worker is 4; it must lie between 0 and 3'),
    ({"*": {"worker": [0]}}, 'operations["*"].worker is a list; it must be an integer'),
    ({"*": {"worker": 0, "workers": [0]}}, "has an unknown key 'workers'; its keys are worker"),
    ({"*": {"workers": 3}}, 'operations["*"].workers is 3; it must be a list'),
    ({"*": {"workers": [0, -1]}}, 'operations["*"].workers[1] is -1; it must lie between 0 and 3'),
    ({"*": {"workers": [0] * 20_000}}, "has 20000 entries; a form has at most 16384"),
    ({"*": {"along": None}}, 'operations["*"].along is null; it must be a string'),
    ({"*": {"along": "n", "on": 3}}, "has an unknown key 'on'; its keys are along, workers"),
    ({"*": {"spread": [["n", 0]]}}, 'operations["*"].spread[0][1] is 0; it must lie between 1 and'),
    ({"*": {"spread": [["n"]]}}, 'operations["*"].spread[0] has 1 entry; it must have 2'),
    ({"*": {"spread": [["n", 1 << 20]]}}, "it must lie between 1 and 16384"),
    ({"*": {"cut": "n"}}, "operations[\"*\"] lacks 'bounds'"),
    ({"*": {"cut": "n", "bounds": [1 << 60]}}, 'operations["*"].bounds[0] is 1152921504606846976'),
    ({"*": {"parts": [[0, [[4, 0]]]]}}, 'operations["*"].parts[0][1][0][1] is 0; it must lie between 4'),
    ({"*": {"parts": [], "workers": []}}, "has an unknown key 'workers'"),
    (["n"], "operations is a list; it must be an object"),
    (None, "operations is null; it must be an object"),
]

OF_DOCUMENTS: list[tuple[Any, str]] = [
    ([1], "the document is a list; it must be an object"),
    (None, "the document is null; it must be an object"),
    ({"operations": {}, "fc1_weight": 0}, "unknown key 'fc1_weight'; its keys are workers, operations"),
    ({"workers": 8, "tensors": {}}, "it is for 8 workers, but 4 were asked for; ask for 8"),
    ({"workers": 0}, "workers is 0; it must lie between 1 and"),
    ({"workers": "4"}, 'workers is "4"; it must be an integer'),
    ({"a": "i"}, 'tensors["a"] is "i"; it must be an integer'),
    ({"a": -1}, 'tensors["a"] is -1; it must lie between 0 and 63'),
    ({"a": [0, True]}, 'tensors["a"][1] is true; it must be an integer'),
    ({"a": 1e3}, 'tensors["a"] is 1000.0; it must be an integer'),
    ({"a": {"worker": 0}}, 'tensors["a"] does not give a dimension or null for each step'),
    ({"a": [{"at": 0}, 0]}, 'add "operations" with a form for each'),
    ({"a": "follow"}, 'tensors["a"] does not give a dimension or null for each step'),
    ({"order": ["b"]}, '"order" is for plans that are written in full; add "operations"'),
    ({"copies": {"a": []}}, '"copies" is for plans that are written in full; add "operations"'),
    ({"operations": {}, "order": "b"}, 'order is "b"; it must be a list'),
    ({"operations": {}, "order": ["b", 1]}, "order[1] is 1; it must be a string"),
    ({"operations": {}, "copies": {"a": {}}}, 'copies["a"] is an object; it must be a list'),
    ({"operations": {}, "copies": {"a": [{"form": 0}]}}, "copies[\"a\"][0] lacks 'readers'"),
    (
        {"operations": {}, "copies": {"a": [{"form": 0, "readers": "b"}]}},
        'copies["a"][0].readers is "b"; it must be a list',
    ),
    (
        {"operations": {}, "copies": {"a": [{"form": 0, "readers": [], "source": -1}]}},
        'copies["a"][0].source is -1',
    ),
]


@pytest.mark.parametrize(
    ("document", "says"), [({"operations": o}, says) for o, says in OF_OPERATIONS] + OF_DOCUMENTS
)
def test_wrong_content_is_refused_with_its_place(document: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    with pytest.raises(PlanError) as raised:
        read_written_plan(path, 4)
    assert f"the layout file {str(path)!r} cannot be used: " in str(raised.value)
    assert says.replace('["', "['").replace('"]', "']") in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("twice.json", '{"operations": {"a": null, "a": null}}', "'a' occurs twice"),
        ("twice.yaml", "operations:\n  a: null\n  a: null\n", "'a' occurs twice"),
        ("nan.json", '{"a": NaN}', "NaN is not a number"),
        ("inf.yaml", "a: .inf\n", ".inf is not a number"),
        ("alias.yaml", "a: &x {worker: 0}\nb: *x\n", "line 2 has an alias"),
        ("key.yaml", "operations: {'*': {on: 0}}\n", "the key True is not a string; put it in quotes"),
        ("tag.yaml", "a: !!python/object/apply:os.system [echo]\n", "not valid YAML"),
        ("date.yaml", "a: 2020-01-01\n", "it must be an integer"),
        ("digits.json", f'{{"a": {"9" * 5000}}}', "it is not JSON"),
        ("digits.yaml", f"a: {'9' * 5000}\n", "it is not valid YAML"),
        ("deep.json", "[" * 100_000, "nested too deeply"),
        ("deep.yaml", "[" * 50_000, "YAML|nested too deeply"),
        ("large.yaml", "#" * (1 << 17), "larger than 65536 bytes; JSON may be larger"),
        ("empty.json", "", "it is not JSON"),
        ("empty.yaml", "", "the document is null; it must be an object"),
        ("cut.json", '{"operations": {"a"', "it is not JSON"),
        ("bytes.yaml", "\udcff\udcfe", "it is not valid YAML"),
        ("nul.yaml", "a\x00: 0", "it is not valid YAML"),
    ],
)
def test_broken_files_are_refused_at_once(name: str, text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode(errors="surrogateescape"))
    with no_hang(), pytest.raises(PlanError, match=says) as raised:
        read_written_plan(path, 4)
    assert repr(str(path)) in str(raised.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none.yaml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(PlanError, match=says):
            read_written_plan(path, 4)

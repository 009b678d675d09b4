"""Strategy files that are wrong: each is refused with its name, the line, and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tofu.errors import PlanError
from tofu.machines import load
from tofu.partitioner.methods.autodist.strategy_file import read_strategy
from tofu.partitioner.methods.synchronise import synchronise

from .embedded import embedded

GRAPH = embedded()
"""Its variables are `table_weight` (12, 5), `fc_weight` (8, 5) and `fc_bias` (8)."""

WORKERS = 4

MACHINE = "machine: m\nlevels: [{name: gpu, bandwidth: 1 GB/s}]\ndevices: [a0, a1, b0, b1]\n"

HEAD = 'strategy: 1\nvariables:\n  "*_bias": {sync: all-reduce}\n'
"""Three lines; the entry of the weights is in the fourth."""


def top(text: str) -> str:
    """Return a file with a wrong entry in line 1 and good variables."""
    return f'{text}\nstrategy: 1\nvariables: {{"*": {{sync: all-reduce}}}}\n'


def weights(text: str) -> str:
    """Return a file whose entry for weights, in line 4, is wrong."""
    return f'{HEAD}  "*_weight": {text}\n'


def cut(text: str) -> str:
    """Return a file with a wrong cut in line 4."""
    return weights(f"{{sync: all-reduce, cut: {text}}}")


def part(text: str) -> str:
    """Return a file with two parts, the second of which, in line 8, is wrong."""
    two = "    cut: {axis: 0, parts: 2}\n    parts:\n      - {sync: all-reduce}\n"
    return f"{HEAD}  fc_weight:\n{two}      - {text}\n"


def grouped(text: str) -> str:
    """Return a file with two groups of replicas, and a wrong entry in line 3."""
    return f"strategy: 1\nreplicas: [[0, 1], [2, 3]]\nvariables: {{'*': {text}}}\n"


WHOLE = {
    "": (1, "the file is null; it must be an object"),
    "# nothing\n": (1, "the file is null"),
    "[]": (1, "the file is an object|the file is a list"),
    "strategy": (1, 'the file is "strategy"; it must be an object'),
    "strategy: 1": (1, "the file lacks 'variables'; its keys are strategy, variables"),
    "variables: {}": (1, "the file lacks 'strategy'"),
    "strategy: 1\nvariables: {}": (2, "variables has nothing for 'table_weight' .3 in all.; add it"),
    "strategy: 1\nvariables: {fc_bias: {sync: all-reduce}}": (2, "nothing for 'table_weight' .2 in all"),
    "strategy: 1\nvariables: null": (2, "variables is null; it must be an object"),
    "strategy: 1\nvariables: []": (2, "variables is a list; it must be an object"),
    "strategy: 1\nvariables: {fc_wieght: {sync: ps}}": (2, "'fc_wieght' matches no variable; did you mean"),
    "strategy: 1\nvariables: {'*': {sync: ps, worker: 0}, 'w*': {}}": (2, "'w.' matches no variable"),
    "strategy: 1\nvariables: {'': {sync: all-reduce}}": (2, "'' matches no variable"),
    "strategy: 1\nstrategy: 1\nvariables: {}": (2, "the key 'strategy' occurs twice"),
    "strategy: 1\nvariables:\n  a: {}\n  b: {}\n  a: {}": (5, "the key 'a' occurs twice"),
    "strategy: 1\nvariables: {a: {sync: ps, sync: ps}}": (2, "the key 'sync' occurs twice"),
    "strategy: 1\nvariables: &all {a: *all}": (2, "has an alias; write it out"),
    "strategy: 1\nvariables:\n  a: &x {sync: all-reduce}\n  b: *x": (4, "has an alias"),
    "strategy: 1\nvariables:\n  a: {<<: {sync: ps}}": (
        3,
        "not valid YAML: could not determine a constructor",
    ),
    "strategy: !!python/object/apply:os.getcwd []\nvariables: {}": (1, "not valid YAML"),
    "strategy: !!python/name:os.system\nvariables: {}": (1, "not valid YAML"),
    "strategy: 1\nvariables: {1: {sync: all-reduce}}": (2, "the key 1 is not a string; put it in quotes"),
    "strategy: 1\nvariables: {null: {sync: all-reduce}}": (2, "the key None is not a string"),
    "strategy: .nan\nvariables: {}": (1, "is not a number that a file may contain"),
    "strategy: 1\nworkers: .inf\nvariables: {}": (2, "is not a number that a file may contain"),
    "strategy: 1\nd: &d {sync: ps}\nvariables: {'*': {<<: *d}}": (3, "has an alias; write it out"),
    "strategy: 1\nvariables: {'*': {sync: all-reduce, order: &o [*o]}}": (2, "has an alias"),
    "strategy: 1\nshares: [.nan, 1, 1, 1]\nvariables: {}": (2, "is not a number that a file may contain"),
    "strategy: 2024-01-01\nvariables: {}": (1, "strategy is .*date.* it must be an integer"),
    "strategy: 1\nvariables: !!set {a, b}": (2, "variables is .*; it must be an object"),
    "strategy: 1\nvariables: !!binary aGVsbG8=": (2, "variables is .*; it must be an object"),
    "strategy: 1\nvariables: {[a]: {sync: all-reduce}}": (2, "is not a string; put it in quotes"),
    "strategy: 1\nvariables: {'*': {sync: all-reduce}}\n---\nstrategy: 1": (3, "another document"),
    'strategy: 1\nvariables:\n  "a\\e[31m": {sync: all-reduce}': (3, "'a.x1b.31m' matches no variable"),
    "strategy: [1\nvariables: {}": (2, "not valid YAML"),
    "strategy: 1\n\tvariables: {}": (2, "not valid YAML"),
    "strategy: 1\nvariables: {a: 'b": (2, "not valid YAML"),
}

TOP = {
    "unknown: 1": "the file has an unknown key 'unknown'",
    "Replicas: [0]": "the file has an unknown key 'Replicas'",
    "workers: 2": "workers is 2, but the plan is for 4; make them equal",
    "workers: 0": "workers is 0; it must lie between 1",
    "workers: '4'": 'workers is "4"; it must be an integer',
    "workers: true": "workers is true; it must be an integer",
    "workers: 99999999999999999999": "workers is 9+; it must lie between",
    "graph: 5f3c": "graph is '5f3c', but that of .* is '.*'; leave the entry out",
    "graph: 5": "graph is 5; it must be a string",
    "base: 7": "base is 7; it must be a string",
    "base: ''": "base is ''; write the path of a plan file, or a method",
    'base: "a\\0b"': "base is 'a.x00b'; write the path",
    "base: none.json": "base: there is no plan file '.*none.json'; give a path that is relative",
    "base: ../../none.json": "base: there is no plan file",
    "machine: none.yaml": "machine: cannot read the machine file",
    "machine: dgx-9": "machine: there is neither a preset nor a machine file named 'dgx-9'",
    "machine: [dgx-1-v100]": "machine is a list; it must be a string",
    "replicas: 3": "replicas is 3; it must be a list",
    "replicas: []": "replicas: the list of replicas is empty; leave it out",
    "replicas: [[]]": "replicas: a group of replicas has no workers; leave it out",
    "replicas: [0, 0]": "replicas: the list of replicas has worker 0 twice; name each worker once",
    "replicas: [[0, 1], [1, 2]]": "replicas: the list of replicas has worker 1 twice",
    "replicas: [0, [1, 2]]": "replicas has workers next to lists; write lists of workers throughout",
    "replicas: [4]": r"replicas\[0\] is 4; it must lie between 0 and 3",
    "replicas: [0, -1]": r"replicas\[1\] is -1; it must lie between",
    "replicas: [[0], [1.5]]": r"replicas\[1\]\[0\] is 1.5; it must be an integer",
    "replicas: [c0]": r"replicas\[0\] is 'c0', but machine 'm' has no such device; ",
    "replicas: [[0], [1], [2], [3], []]": "replicas: a group of replicas has no workers; leave it out",
    'shares: ["0.5", 0.5, 0, 0]': r'shares\[0\] is "0.5"; it must be a number',
    f"shares: [0.5, 0.5, 1{'0' * 400}, 0]": r"shares\[2\] is too large for a number",
    "shares: [-0.0, 0, 0, 0]": "shares are all 0; give a worker a part",
    "updates: true": "updates is true; it must be a string",
    "messages: [together]": "messages is a list; it must be a string",
    "replicas: [a0, 0]": "replicas: the list of replicas has worker 0 twice",
}

WEIGHTS = {
    weights("all-reduce"): r"variables\['\*_weight'\] is \"all-reduce\"; it must be an object",
    weights("null"): "is null; it must be an object",
    weights("[{sync: all-reduce}]"): "is a list; it must be an object",
    weights("{}"): "lacks 'sync'; write one of all-reduce, ps",
    weights("{worker: 1}"): "lacks 'sync'",
    weights("{sync: gossip}"): "sync is 'gossip'; there are: all-reduce, ps",
    weights("{sync: allreduce}"): "sync is 'allreduce'; did you mean 'all-reduce'",
    weights("{sync: 1}"): "sync is 1; it must be a string",
    weights("{sync: ps}"): "lacks 'worker'; its keys are sync, worker, proxy, via",
    weights("{sync: ps, worker: 4}"): "worker is 4; it must lie between 0 and 3",
    weights("{sync: ps, worker: -1}"): "worker is -1; it must lie between",
    weights("{sync: ps, worker: 1.5}"): "worker is 1.5; it must be an integer",
    weights("{sync: ps, worker: null}"): "worker is null; it must be an integer",
    weights("{sync: ps, worker: [1]}"): "worker is a list; it must be an integer",
    weights("{sync: ps, worker: c0}"): "worker is 'c0', but machine 'm' has no such device; ",
    weights("{sync: ps, worker: ''}"): "worker is '', but machine 'm' has no such device",
    weights("{sync: ps, worker: 1, order: [1]}"): "unknown key 'order'; its keys are",
    weights("{sync: ps, worker: 1, group: x}"): 'group is "x"; it must be an integer',
    weights("{sync: ps, worker: 1, order: [0]}"): "unknown key 'order'",
    weights("{sync: ps, worker: 1, tree: two-level}"): "unknown key 'tree'",
    weights("{sync: ps, worker: 1, colour: red}"): "unknown key 'colour'",
    weights("{sync: ps, worker: 1, proxy: 1}"): "proxy is 1; it must be true or false",
    weights("{sync: ps, worker: 1, proxy: 'yes'}"): 'proxy is "yes"; it must be true or false',
    weights("{sync: ps, worker: 1, via: []}"): "via is empty; name workers, or leave it out",
    weights("{sync: ps, worker: 1, via: 0}"): "via is 0; it must be a list",
    weights(
        "{sync: ps, worker: 1, via: [0, 1]}"
    ): "goes via 2 workers, but the replicas are in 1 group; name a",
    weights("{sync: all-reduce, worker: 1}"): "unknown key 'worker'",
    weights("{sync: all-reduce, proxy: true}"): "unknown key 'proxy'",
    weights("{sync: all-reduce, group: -1}"): "group is -1; it must lie between",
    weights("{sync: all-reduce, group: 1e3}"): 'group is "1e3"; it must be an integer',
    weights("{sync: all-reduce, group: 99999999999}"): "group is 99999999999; it must lie between",
    weights("{sync: all-reduce, order: [0, 1]}"): r"the order \[0, 1\], but the replicas are \[0, 1, 2, 3\]",
    weights("{sync: all-reduce, order: [0, 1, 2, 2]}"): "the order .* name each once",
    weights("{sync: all-reduce, order: {}}"): "order is an object; it must be a list",
    weights("{sync: all-reduce, order: []}"): "order is empty; name workers",
    weights("{sync: all-reduce, order: [0, 1, 2, 4]}"): r"order\[3\] is 4; it must lie between",
    weights("{sync: all-reduce, tree: two-level}"): "all replicas are in one group; give several groups",
    weights("{sync: all-reduce, tree: binary}"): "tree is 'binary'; write two-level, or leave it out",
    weights("{sync: all-reduce, tree: 2}"): "tree is 2; it must be a string",
    weights("{sync: all-reduce, factors: 1}"): "factors is 1; it must be true or false",
    weights("{sync: true, worker: 1}"): "sync is true; write one of all-reduce, ps, or false",
    weights("{sync: no}"): "lacks 'worker'",
    weights("{sync: false, worker: 1, group: 2}"): "unknown key 'group'; its keys are sync, worker",
    weights("{sync: all-reduce, group: true}"): "group is true; it must be an integer",
    weights("{sync: ps, worker: 1, group: -3}"): "group is -3; it must lie between",
    weights("{sync: ps, worker: 1:30}"): "worker is 90; it must lie between 0 and 3",
    weights("{sync: ps, worker: 1e0}"): "worker is '1e0', but machine 'm' has no such device",
    weights("{sync: ps, worker: 1, via: [[0]]}"): r"via\[0\] is a list; it must be an integer",
    weights("{sync: all-reduce, encode: true}"): "encode is true; it must be an object",
    weights("{sync: all-reduce, encode: int8}"): "encode.type is 'int8'; there are: float16, bfloat16",
    weights(
        "{sync: all-reduce, encode: {type: float16, feedback: 'no'}}"
    ): 'feedback is "no"; it must be true',
    weights("{sync: all-reduce, encode: {powersgd: 2, type: float16}}"): "encode has an unknown key 'type'",
    weights("{sync: all-reduce, encode: {topk: 0}}"): "topk is 0; it must lie between",
    weights("{sync: all-reduce, encode: {topk: 1.0}}"): "topk is 1.0; write a number of elements, or a share",
    weights("{sync: all-reduce, delay: -1}"): "delay is -1; it must lie between 0 and 1024",
    weights("{sync: all-reduce, delay: 1.0}"): "delay is 1.0; it must be an integer",
    weights("{sync: all-reduce, factors: true, encode: bfloat16}"): "leave out 'factors' or 'encode'",
    weights("{sync: ps, workers: [0, 1]}"): "workers has 2 entries for 1 parts; write one for each",
    weights("{sync: ps, workers: 0}"): "workers is 0; it must be a list",
    weights("{sync: ps, workers: [9]}"): r"workers\[0\] is 9; it must lie between",
    weights("{sync: ps, worker: 0, workers: [0]}"): "workers stands next to 'worker'; leave out one",
    weights("{sync: all-reduce, workers: [0]}"): "unknown key 'worker'",
    weights("{sync: ps, parts: [{sync: all-reduce}]}"): "has 'parts' and 'sync'; write into each part",
    weights("{parts: {sync: all-reduce}}"): "parts is an object; it must be a list",
    weights("{parts: []}"): "parts has 0 entries for 1 parts",
    weights("{parts: [1]}"): r"parts\[0\] is 1; it must be an object",
    cut("null"): "cut is null; it must be an object",
    cut("2"): "cut is 2; it must be an object",
    cut("[]"): "cut is an empty list; leave it out",
    cut("{axis: 0}"): "cut needs 'parts' or 'bounds', and not both",
    cut("{axis: 0, parts: 2, bounds: [1]}"): "cut needs 'parts' or 'bounds', and not both",
    cut("{parts: 2}"): "cut lacks 'axis'; its keys are axis, parts, bounds",
    cut("{axis: 0, parts: 2, even: true}"): "cut has an unknown key 'even'",
    cut("{axis: 2, parts: 2}"): "axis is 2; it must lie between 0 and 1",
    cut("{axis: rows, parts: 2}"): 'axis is "rows"; it must be an integer',
    cut("{axis: 0, parts: 0}"): "parts is 0; it must lie between 1 and 12",
    cut("{axis: 0, parts: 13}"): "parts is 13; it must lie between 1 and 12",
    cut("{axis: 0, parts: 2, axis: 1}"): "the key 'axis' occurs twice in one object; leave out one",
    cut(f"{{axis: 1{'0' * 400}, parts: 2}}"): "axis is 1000+...; it must lie between 0 and 1",
    cut("{axis: 0, parts: 9223372036854775808}"): "parts is 9223372036854775808; it must lie between",
    cut("{axis: 0, bounds: [2, 6, 4]}"): r"the bounds \[2, 6, 4\] do not cut dimension 0",
    cut("{axis: 0, bounds: 4}"): "bounds is 4; it must be a list",
    cut("{axis: 0, bounds: [4, 4]}"): r"the bounds \[4, 4\] do not cut dimension 0 of 12; they must rise",
    cut("{axis: 0, bounds: [7, 3]}"): r"the bounds \[7, 3\] do not cut",
    cut("{axis: 0, bounds: [0]}"): r"the bounds \[0\] do not cut",
    cut("{axis: 0, bounds: [12]}"): r"the bounds \[12\] do not cut",
    cut("{axis: 0, bounds: [13]}"): r"bounds\[0\] is 13; it must lie between 0 and 12",
    cut("{axis: 0, bounds: [1.5]}"): r"bounds\[0\] is 1.5; it must be an integer",
    cut("[{axis: 0, parts: 2}, {axis: 0, parts: 2}]"): r"along dimensions \[0, 0\]; name each once",
    cut("[{axis: 1, parts: 2}, {axis: 0, parts: 2}]"): r"along dimensions \[1, 0\]; name each once",
    cut("[{axis: 0, parts: 2}, 1]"): r"cut\[1\] is 1; it must be an object",
}

ELSEWHERE = {
    part("{sync: gossip}"): (8, r"\['fc_weight'\].parts\[1\].sync is 'gossip'"),
    part("{sync: ps}"): (8, r"parts\[1\] lacks 'worker'"),
    part("{sync: ps, worker: 7}"): (8, r"parts\[1\].worker is 7"),
    part("{sync: all-reduce, cut: {axis: 0, parts: 2}}"): (8, r"parts\[1\] has an unknown key 'cut'"),
    part("{sync: all-reduce}\n      - {sync: all-reduce}"): (6, "parts has 3 entries for 2 parts"),
    part("null"): (8, r"parts\[1\] is null; it must be an object"),
    grouped("{sync: ps, worker: 0, via: [0]}"): (
        3,
        "goes via 1 worker, but the replicas are in 2 groups; name a",
    ),
    grouped("{sync: ps, worker: 0, via: [0, 1]}"): (3, r"via worker 1, which is not in its group \[2, 3\]"),
    grouped("{sync: ps, worker: 0, via: [0, 2], proxy: both}"): (3, 'proxy is "both"; it must be true'),
    grouped("{sync: ps, worker: 1, via: [2, 0]}"): (3, r"via worker 2, which is not in its group \[0, 1\]"),
    f"{HEAD}  fc_weight: {{sync: all-reduce, masked: true}}": (
        4,
        "so no sums are masked; leave out 'masked'",
    ),
    f"{HEAD}  fc_weight:\n    sync: ps\n    worker: 5\n": (6, r"\['fc_weight'\].worker is 5"),
    f"{HEAD}  fc_weight:\n    sync: ps\n    worker: 1\n    size: 5\n": (7, "unknown key 'size'"),
    f"{HEAD}  fc_weight:\n    cut:\n      axis: 0\n      parts: 9\n": (7, "cut.parts is 9"),
    'strategy: 2\nvariables: {"*": {sync: all-reduce}}': (1, "strategy is 2; it must lie between 1 and 1"),
    'strategy: "1"\nvariables: {"*": {sync: all-reduce}}': (1, 'strategy is "1"; it must be an integer'),
    'strategy: 1\nvariables: {"*": {sync: all-reduce}, fc_bias: {cut: {axis: 1, parts: 2}}}': (
        2,
        "cut.axis is 1; it must lie between 0 and 0",
    ),
}

CASES = [
    *((text, line, says) for text, (line, says) in (WHOLE | ELSEWHERE).items()),
    *((top(text), 1, says) for text, says in TOP.items()),
    *((text, 4, says) for text, says in WEIGHTS.items()),
]


def test_there_are_a_hundred() -> None:
    assert len({text for text, _, _ in CASES}) == len(CASES) >= 100


@pytest.mark.parametrize(("text", "line", "says"), CASES)
def test_a_hostile_file_is_refused_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_text(text, encoding="utf-8")
    machine = tmp_path / "machine.yaml"
    machine.write_text(MACHINE, encoding="utf-8")
    with pytest.raises(PlanError, match=says) as caught:
        read_strategy(path, GRAPH, WORKERS, load(str(machine)))
    message = str(caught.value)
    assert message.startswith(f"the strategy file {str(path)!r} cannot be used: ")
    assert re.search(rf"\bline {line}\b", message), message
    assert len(message) < 700


MORE = "so 999 of them cannot be exchanged; choose a share, or fewer"
HALF = "{cut: {axis: 0, parts: 2}, parts: [{sync: all-reduce, tree: two-level}, {sync: all-reduce}]}"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (weights("{sync: all-reduce, encode: {topk: 999}}"), 4, MORE),
        (weights("{sync: all-reduce, encode: {powersgd: 6}}"), 4, "its rank is at most 5, not 6; choose"),
        (top("base: recursive2"), 1, "base: the base 'recursive2' is neither a plan file.*did you mean"),
        (top("base: strategy.yaml"), 1, "base: the base '.*strategy.yaml' is neither a plan file"),
        (
            top("replicas: [0, 1, 2]").replace("reduce}", "reduce, encode: float16}"),
            3,
            "but 3 are; leave out",
        ),
        (
            grouped("{sync: all-reduce, tree: two-level}").replace(", 3", ""),
            3,
            "two levels.* choose other gro",
        ),
        (grouped(HALF), 3, "in two levels in some parts, and at once in others; give all parts"),
    ],
)
def test_what_does_not_fit_the_graph_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_text(text, encoding="utf-8")
    strategy = read_strategy(path, GRAPH, WORKERS)
    with pytest.raises(PlanError, match=says) as caught:
        synchronise(GRAPH, WORKERS, strategy)
    assert str(caught.value).startswith(f"the strategy file {str(path)!r} cannot be used: line {line}: ")


def test_a_base_that_is_given_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_text(top("base: recursive"), encoding="utf-8")
    with pytest.raises(PlanError, match=r"^the base 'none' is neither"):
        synchronise(GRAPH, WORKERS, read_strategy(path, GRAPH, WORKERS), "none")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff\xfe\x00", "not valid YAML"),
        (b"strategy: 1\nvariables: \x00", "not valid YAML"),
        (b"[" * 30_000, "nested too deeply|not valid YAML"),
        (b"#" * (64 << 10) + b"##", "is larger than 65536 bytes"),
        (b"strategy: " + b"9" * 6000 + b"\nvariables: {}", "strategy is 9+|not valid YAML"),
    ],
)
def test_bytes_that_are_not_a_document_are_refused(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_bytes(data)
    with pytest.raises(PlanError, match=says):
        read_strategy(path, GRAPH, WORKERS)


def test_json_has_lines_too(tmp_path: Path) -> None:
    path = tmp_path / "strategy.json"
    path.write_text('{\n"strategy": 1,\n"variables": {"*": {"sync": "gossip"}}\n}', encoding="utf-8")
    with pytest.raises(PlanError, match=r"line 3: variables\['\*'\].sync is 'gossip'"):
        read_strategy(path, GRAPH, WORKERS)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yaml", Path("a\0b")):
        with pytest.raises(PlanError, match="strategy file"):
            read_strategy(path, GRAPH, WORKERS)


def test_devices_need_a_machine(tmp_path: Path) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_text("strategy: 1\nvariables: {'*': {sync: ps, worker: b0}}", encoding="utf-8")
    with pytest.raises(PlanError, match="worker is 'b0', a device, but there is no machine; give one, or"):
        read_strategy(path, GRAPH, WORKERS)

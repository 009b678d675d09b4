"""AutoDist's own texts mean the strategies that they state; settings without a counterpart are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import tofu
from tofu.dataflow.rewrites.encoders import NO_REWRITE, Rewrite
from tofu.errors import PlanError
from tofu.partitioner.methods.autodist.autodist_text import parse_autodist_text
from tofu.partitioner.methods.autodist.builders import partitioned_ps
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.strategy import AllReduce, Partition, Server, Synchronisation
from tofu.partitioner.methods.autodist.strategy_file import read_strategy
from tofu.partitioner.methods.synchronise import synchronise

from .embedded import embedded

GRAPH = embedded()
"""Its variables are `table_weight` (12, 5), `fc_weight` (8, 5) and `fc_bias` (8)."""

REPLICAS = "graph_config { replicas: '10.0.0.1:GPU:0' replicas: '10.0.0.1:GPU:1' replicas: '10.0.0.2:GPU:0' }"

TEXT = """
id: "20200101T000000"
path: "/tmp/autodist/strategies/20200101T000000"
node_config {
  var_name: "table_weight:0"
  partitioner: "2,1"
  part_config {
    var_name: "table_weight/part_0:0"
    PSSynchronizer {
      reduction_destination: "10.0.0.2:CPU:0"
      local_replication: true
      sync: true
    }
  }
  part_config {
    var_name: "table_weight/part_1:0"
    AllReduceSynchronizer { spec: NCCL  group: 3 }
  }
}
node_config <
  var_name: "fc_weight", SFBSynchronizer { spec: 2 }
  compressor { type: SFBCompressor }
>
node_config: {
  var_name: "fc" "_bias:0"  # joined
  PSSynchronizer { reduction_destination: '10.0.0.3:CPU:0' sync: true staleness: 0 };
}
graph_config {
  replicas: ["10.0.0.1:GPU:0", "10.0.0.1:GPU:1"]
  replicas: "10.0.0.2:GPU:0"
}
"""


def test_every_field_is_read(tmp_path: Path) -> None:
    """Three replicas; the processor of the second host is its card, and the third host is a server only."""
    path = tmp_path / "strategy.pbtxt"
    path.write_text(TEXT, encoding="utf-8")
    found = read_strategy(path, GRAPH, 4)
    assert found.replicas == ((0, 1, 2),)
    assert found.variables == {
        "table_weight": Synchronisation((Server(2, proxy=True), AllReduce(3)), Partition(0, (6,))),
        "fc_weight": Synchronisation((AllReduce(),), factors=True),
        "fc_bias": Synchronisation((Server(3),)),
    }
    assert list(found.variables) == ["table_weight", "fc_weight", "fc_bias"]
    plan = compile_strategy(GRAPH, 4, found)
    tofu.verify(GRAPH, plan)


def node(name: str, text: str) -> str:
    return f'node_config {{\n  var_name: "{name}"\n  {text}\n}}\n'


def server(worker: int) -> str:
    return f'PSSynchronizer {{ reduction_destination: "host{worker}:CPU:0" sync: true }}'


def test_a_builder_written_as_autodist_writes_it_is_that_builder() -> None:
    """`partitioned-ps` on four hosts with a card each."""
    strategy = partitioned_ps(GRAPH, 4)
    nodes = []
    for name, how in strategy.variables.items():
        servers = [part.worker for part in how.parts if isinstance(part, Server)]
        parts = [f'part_config {{ var_name: "{name}/part" {server(worker)} }}' for worker in servers]
        shape = next(tensor.shape for tensor in GRAPH.tensors if tensor.name == name)
        numbers = ",".join([str(len(servers)), *("1" for _ in shape[1:])])
        nodes.append(node(name, f'partitioner: "{numbers}" {" ".join(parts)}'))
    replicas = " ".join(f'replicas: "host{worker}:GPU:0"' for worker in range(4))
    text = f"{''.join(nodes)} graph_config {{ {replicas} }}"
    assert parse_autodist_text(text, GRAPH, 4) == strategy


def test_staleness_is_a_delay() -> None:
    """The whole variable, or each part, is as late as its staleness allows; an all-reduce is never late."""
    late = 'PSSynchronizer { reduction_destination: "10.0.0.1:GPU:0" sync: true staleness: 2 }'
    parts = f'partitioner: "2" part_config {{ {late} }} part_config {{ AllReduceSynchronizer {{ }} }}'
    text = node("table_weight", late) + node("fc_weight", PLAIN) + node("fc_bias", parts) + REPLICAS
    found = parse_autodist_text(text, GRAPH, 3).variables
    assert found["table_weight"] == Synchronisation((Server(0),), rewrite=Rewrite(delay=2))
    assert found["fc_weight"] == Synchronisation((AllReduce(),))
    assert found["fc_bias"].part_rewrites == (Rewrite(delay=2), NO_REWRITE)
    on_two = text.replace("replicas: '10.0.0.2:GPU:0'", "")
    plan = compile_strategy(GRAPH, 2, parse_autodist_text(on_two, GRAPH, 2))
    assert {"delayed_1(table_weight)", "delayed_2(fc_bias[0:4])"} <= plan.versions.keys()


@pytest.mark.parametrize("kind", ["HorovodCompressor", "HorovodCompressorEF"])
def test_a_cast_to_float32_changes_no_gradient_in_float32(kind: str) -> None:
    single = embedded("float32")
    text = "".join(
        node(name, f"AllReduceSynchronizer {{ compressor: {kind} }}")
        for name in ("table_weight", "fc_weight", "fc_bias")
    )
    found = parse_autodist_text(text + REPLICAS, single, 3).variables
    assert set(found.values()) == {Synchronisation((AllReduce(),))}
    with pytest.raises(PlanError, match=f"compressor is '{kind}', which has no counterpart"):
        parse_autodist_text(text + REPLICAS, GRAPH, 3)


PLAIN = "AllReduceSynchronizer { }"
OTHERS = node("table_weight", PLAIN) + node("fc_weight", PLAIN)
"""Eight lines; the entry of the bias is in lines 9 to 12."""


def bias(text: str) -> str:
    return OTHERS + node("fc_bias", text) + REPLICAS


def served(text: str) -> str:
    return bias(f'PSSynchronizer {{ reduction_destination: "10.0.0.1:CPU:0" {text} }}')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: graph_config lists no replicas"),
        (REPLICAS, "line 1: no node_config has the var_name 'table_weight' .3 in all"),
        ("node_config {\n", "line 2: the end of the text is not expected"),
        ("node_config }", "line 1: '}' is not expected"),
        ("node_config { var_name: }", "line 1: '}' is not expected"),
        ('id: "a\nb"', "line 1: "),
        ("id: 0x10", "line 1: "),
        ("[google.any]: 1", r"line 1: '\[' is not expected"),
        ("$", r"line 1: '\$' is not expected"),
        ("colour: 1", "line 1: the file has an unknown field 'colour'; its fields are id, path"),
        ("id: 5", "line 1: id is 5; it must be text"),
        ('id: "a" id: "b"', "line 1: id stands in line 1 already"),
        ('id: "a\\n"', "has a backslash; write the characters themselves"),
        ("node_config: 1", "node_config is 1; it must be a message in braces"),
        ("a {" * 40 + "}" * 40, "nested too deeply; there are 16 levels"),
        (f"{REPLICAS} {REPLICAS}", "line 1: graph_config stands in line 1 already"),
        ("graph_config { replicas: 'a' replicas: 'a' }", "line 1: the replica 'a' is listed twice"),
        ("graph_config { replicas: 'a' gpus: 1 }", "line 1: graph_config has an unknown field 'gpus'"),
        (node("", PLAIN) + REPLICAS, "line 1: node_config: the graph updates no variable ''"),
        (node("fc_wieght:0", PLAIN) + REPLICAS, "no variable 'fc_wieght:0'; did you mean 'fc_weight'"),
        ("node_config { }" + REPLICAS, "line 1: node_config lacks var_name"),
        (
            bias(PLAIN) + node("fc_bias:0", PLAIN),
            "variable 'fc_bias' stands in line 9 already; leave out one",
        ),
        (bias(""), "line 9: node_config has 0 synchronizers; give one of PSSynchronizer"),
        (bias(f"{PLAIN} PSSynchronizer {{ }}"), "line 9: node_config has 2 synchronizers"),
        (bias(f"{PLAIN} staleness: 1"), "line 11: node_config has an unknown field 'staleness'"),
        (bias("PSSynchronizer { sync: true }"), "line 11: PSSynchronizer lacks reduction_destination"),
        (
            served("staleness: 2"),
            "line 11: PSSynchronizer has a staleness of 2, but applies gradients in the or",
        ),
        (served("sync: true staleness: -2"), "line 11: staleness is -2; it must lie between 0 and 1,024"),
        (served("sync: true proxy: true"), "line 11: PSSynchronizer has an unknown field 'proxy'"),
        (served("sync: 1"), "line 11: sync is 1; it must be true or false"),
        (served("sync: true staleness: true"), "staleness is True; it must be a whole number"),
        (
            bias("AllReduceSynchronizer { group: -1 }"),
            "line 11: group is -1; it must lie between 0 and 2147483647",
        ),
        (bias("AllReduceSynchronizer { group: 2147483648 }"), "line 11: group is 2147483648; it must lie"),
        (bias(f"AllReduceSynchronizer {{ group: {'9' * 30} }}"), "line 11: 9+ is not a whole number"),
        (bias("AllReduceSynchronizer { group: nan }"), "line 11: group is 'nan'; it must be a whole number"),
        (bias("AllReduceSynchronizer < }"), "line 11: '}' is not expected"),
        (REPLICAS + "}", "line 1: '}' is not expected"),
        (REPLICAS + "\nnode_config {", "line 2: the end of the text is not expected"),
        (bias("AllReduceSynchronizer { group: 1.5 }"), "line 11: 1.5 is not a whole number"),
        (bias("AllReduceSynchronizer { group: 'a' }"), "group is 'a'; it must be a whole number"),
        (
            bias("AllReduceSynchronizer { spec: MPI }"),
            "spec is 'MPI', which has no counterpart; write one of A",
        ),
        (bias("AllReduceSynchronizer { spec: 7 }"), "spec is '7', which has no counterpart"),
        (
            bias("AllReduceSynchronizer { compressor: HorovodCompressorEF }"),
            "line 11: compressor is 'HorovodCompressorEF', which has no counterpart; write one of None",
        ),
        (bias("AllReduceSynchronizer { compressor: 1 }"), "compressor is 'HorovodCompressor', which has no"),
        (
            bias(f"{PLAIN} compressor {{ type: SFBCompressor }}"),
            "type is 'SFBCompressor', which has no count",
        ),
        (
            bias(f'{PLAIN} partitioner: "2,1"'),
            "line 11: partitioner is '2,1'; variable 'fc_bias' needs 1 num",
        ),
        (bias(f'{PLAIN} partitioner: "x"'), "partitioner is 'x'; variable"),
        (bias(f'{PLAIN} partitioner: "9"'), "asks for 9 parts of dimension 0, which has 8 elements"),
        (bias(f'{PLAIN} partitioner: "{"9" * 20}"'), f"line 11: partitioner asks for {'9' * 20} parts"),
        (bias(f'{PLAIN} partitioner: "0"'), "asks for 0 parts of dimension 0"),
        (bias(f'{PLAIN} partitioner: "2"'), "has 0 part_config for 2 parts of its partitioner"),
        (bias(f"part_config {{ {PLAIN} }} part_config {{ {PLAIN} }}"), "has 2 part_config for 1 parts"),
        (
            bias(f'{PLAIN} partitioner: "2" part_config {{ {PLAIN} }} part_config {{ {PLAIN} }}'),
            "has a synchronizer next to part_config",
        ),
        (
            bias('partitioner: "2" part_config { } part_config { SFBSynchronizer { } }'),
            "line 11: part_config has 0 synchronizers",
        ),
        (
            bias(f'partitioner: "2" part_config {{ {PLAIN} }} part_config {{ SFBSynchronizer {{ }} }}'),
            "line 9: node_config has SFBSynchronizer for some parts only",
        ),
        (
            bias(f'partitioner: "2" part_config {{ {PLAIN} partitioner: "2" }} part_config {{ {PLAIN} }}'),
            "line 11: part_config is cut again",
        ),
        (
            OTHERS + node("fc_bias", server(9)) + REPLICAS,
            "3 replicas and 1 servers on other hosts are 4 workers",
        ),
    ],
)
def test_what_has_no_counterpart_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "strategy.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError, match=says) as caught:
        read_strategy(path, GRAPH, 3)
    assert str(caught.value).startswith(f"the strategy file {str(path)!r} cannot be used: ")


def test_what_does_not_fit_the_graph_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "strategy.pbtxt"
    apart = 'PSSynchronizer { reduction_destination: "10.0.0.3:CPU:0" }'
    path.write_text(OTHERS + node("fc_bias", apart) + REPLICAS, encoding="utf-8")
    strategy = read_strategy(path, GRAPH, 4)
    with pytest.raises(PlanError, match=r"strategy.pbtxt' cannot be used: line 9: .* but 3 are; leave out"):
        synchronise(GRAPH, 4, strategy)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "strategy.pbtxt"
    path.write_bytes(b"\xff\x00")
    with pytest.raises(PlanError, match=r"strategy.pbtxt' cannot be used: 'utf-8' codec"):
        read_strategy(path, GRAPH, 3)
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(PlanError, match="is larger than 1048576 bytes"):
        read_strategy(path, GRAPH, 3)

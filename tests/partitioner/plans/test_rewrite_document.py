"""Rewrites in files are read again, and hostile entries are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.dataflow.rewrites.encoders import Cast, PowerSgd, Rewrite
from tofu.errors import PlanError
from tofu.partitioner.methods.autodist.strategy import AllReduce, Server, Synchronisation
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import (
    parse_strategy,
    read_strategy,
)
from tofu.partitioner.plans.rewrite_document import decode_rewrite, encode_rewrite
from tofu.support.document_place import DocumentPlace

from ..methods.autodist.embedded import embedded

GRAPH = embedded()
CASTS = st.builds(Cast, st.sampled_from(("float16", "bfloat16")), st.booleans())
ENCODERS = CASTS | st.builds(PowerSgd, st.integers(1, 9))


@given(st.builds(Rewrite, st.none() | ENCODERS, st.integers(0, 5)))
def test_what_is_written_is_read_again(rewrite: Rewrite) -> None:
    assert decode_rewrite(encode_rewrite(rewrite), DocumentPlace("here")) == rewrite


def test_strategies_say_what_happens_to_gradients() -> None:
    document = {
        "strategy": 1,
        "variables": {
            "fc_weight": {"sync": "ps", "worker": 1, "encode": "float16"},
            "*": {"sync": "all-reduce", "encode": {"type": "bfloat16", "feedback": True}, "delay": 2},
        },
    }
    found = parse_strategy(document, GRAPH, 4)
    assert found.variables["fc_weight"] == Synchronisation((Server(1),), None, Rewrite(Cast("float16")))
    both = Synchronisation((AllReduce(),), None, Rewrite(Cast("bfloat16", True), 2))
    assert found.variables["fc_bias"] == found.variables["table_weight"] == both
    assert parse_strategy(strategy_document(found), GRAPH, 4) == found


def test_the_only_part_is_the_whole() -> None:
    document = {"strategy": 1, "variables": {"*": {"parts": [{"sync": "all-reduce", "delay": 1}]}}}
    found = parse_strategy(document, GRAPH, 4).variables["fc_bias"]
    assert found == Synchronisation((AllReduce(),), None, Rewrite(delay=1))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{sync: all-reduce, encode: int8}", r"\['\*'\].encode.type is 'int8'; there are: float16, bfloat16"),
        ("{sync: false}", r"\['\*'\] lacks 'worker'"),
        ("{sync: false, worker: 0, proxy: true}", "unknown key 'proxy'"),
        ("{sync: false, worker: 0, delay: 1}", "so they are not encoded, not delayed"),
        ("{sync: all-reduce, encode: 16}", r"\['\*'\].encode is 16; it must be an object"),
        ("{sync: all-reduce, encode: {feedback: true}}", "encode lacks 'type'"),
        ("{sync: all-reduce, encode: {type: float16, feedback: 1}}", "feedback is 1; it must be true or"),
        ("{sync: all-reduce, encode: {type: float16, rate: 1}}", "unknown key 'rate'"),
        ("{sync: all-reduce, encode: {powersgd: 0}}", "powersgd is 0; it must lie between 1 and 1024"),
        ("{sync: all-reduce, encode: {powersgd: 2, type: float16}}", "unknown key 'type'"),
        ("{sync: all-reduce, delay: -1}", r"\['\*'\].delay is -1; it must lie between 0 and 1024"),
        ("{sync: all-reduce, delay: 99999}", "delay is 99999; it must lie between 0 and 1024"),
        ("{sync: all-reduce, delay: 1.5}", "delay is 1.5; it must be an integer"),
        (
            "{parts: [{sync: all-reduce, delay: x}]}",
            r"\['\*'\].parts\[0\].delay is \"x\"; it must be an integer",
        ),
        (
            "{cut: {axis: 0, parts: 2}, parts: [{sync: all-reduce, delay: 1}, {sync: all-reduce}], delay: 1}",
            r"\['\*'\].* so the whole has no encoder, no delay",
        ),
    ],
)
def test_hostile_entries_are_refused(tmp_path: Path, entry: str, message: str) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_text(f'strategy: 1\nvariables: {{"*": {entry}}}')
    with pytest.raises(PlanError, match=message):
        read_strategy(path, GRAPH, 4)

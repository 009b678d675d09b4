"""Orders of arriving gradients: logged by a run, and replayed bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tofu
from tofu.errors import DataError, ExecutionError
from tofu.sync import Server, Strategy, Synchronisation

DATA = np.random.default_rng(2).standard_normal((32, 5)).astype(np.float32)
NETWORK = tofu.sym.SoftmaxOutput(
    tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=5, name="fc"), name="softmax"
)
GRAPH = tofu.training_graph(NETWORK, {"data": (8, 5), "softmax_label": (8,)})
BY_ARRIVAL = Synchronisation((Server(1, by_arrival=True),))
PLAN = tofu.sync.compile(GRAPH, 4, Strategy({"fc_weight": BY_ARRIVAL, "fc_bias": BY_ARRIVAL}))
STEPS = 4
"""The iterations of an epoch."""


def trained(
    epochs: int,
    arrivals: Path | None = None,
    replay: Path | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> npt.NDArray[np.float32]:
    """Return the weight after training."""
    with tofu.Module(
        NETWORK, [tofu.cpu(i) for i in range(4)], plan=PLAN, threads=4, arrivals=arrivals, replay=replay
    ) as module:
        batches = tofu.ArrayIterator(DATA, DATA.argmax(axis=1), batch_size=8)
        module.fit(batches, num_epoch=epochs, checkpoint=checkpoint, resume=resume, learning_rate=0.5)
        return np.array(module.parameters()["fc_weight"], np.float32)


def test_a_log_is_replayed_bit_for_bit(tmp_path: Path) -> None:
    log = tmp_path / "arrivals.jsonl"
    first = trained(2, arrivals=log)
    np.testing.assert_array_equal(trained(2, replay=log), first)
    head, *orders = map(json.loads, log.read_text().splitlines())
    assert head["workers"] == 4
    assert len(orders) == 2 * STEPS
    assert all(sorted(row) == [0, 1, 2, 3] for order in orders for row in order)
    reversed_log = tmp_path / "reversed.jsonl"
    lines = [json.dumps(head), *(json.dumps([row[::-1] for row in order]) for order in orders)]
    reversed_log.write_text("".join(f"{line}\n" for line in lines))
    assert (trained(2, replay=reversed_log) != first).any(), "the order counts"


def test_a_run_that_goes_on_continues_its_log(tmp_path: Path) -> None:
    log, folder = tmp_path / "arrivals.jsonl", tmp_path / "run"
    trained(1, arrivals=log, checkpoint=folder)
    with log.open("a") as file:
        file.write("[[0, 1, 2, 3], [0, 1, 2, 3]]\n")  # of an iteration that no checkpoint has
    whole = trained(2, arrivals=log, checkpoint=folder, resume=True)
    assert len(log.read_text().splitlines()) == 1 + 2 * STEPS
    np.testing.assert_array_equal(trained(2, replay=log), whole)


def test_all_workers_start_from_the_same_value(tmp_path: Path) -> None:
    """A module writes to every worker what it would have pulled."""
    context = [tofu.cpu(i) for i in range(4)]
    with tofu.Module(NETWORK, context, plan=PLAN, arrivals=tmp_path / "log") as module:
        executor = module.bind({"data": (8, 5), "softmax_label": (8,)})
        value = executor.read("fc_weight")
        assert value.any()
        np.testing.assert_array_equal(executor.read("pulled(fc_weight)"), np.stack([value] * 4))
        module.set_parameters({"fc_weight": value + 1})
        np.testing.assert_array_equal(executor.read("pulled(fc_weight)"), np.stack([value + 1] * 4))


def test_a_run_needs_a_log_if_gradients_are_applied_as_they_arrive() -> None:
    with pytest.raises(ExecutionError, match=r"no two runs are equal; say where the order is logged"):
        trained(1)


def test_a_log_needs_a_plan_that_applies_gradients_as_they_arrive(tmp_path: Path) -> None:
    with (
        tofu.Module(NETWORK, [tofu.cpu(0)], arrivals=tmp_path / "log") as module,
        pytest.raises(ExecutionError, match="sums of gradients, which have no order of arrival"),
    ):
        module.fit(tofu.ArrayIterator(DATA, DATA.argmax(axis=1), batch_size=8))
    assert not (tmp_path / "log").exists()


def test_a_run_logs_or_replays() -> None:
    with pytest.raises(DataError, match="cannot log arrivals and replay them; leave out"):
        tofu.Module(NETWORK, [tofu.cpu(0)], arrivals="a", replay="b")


@pytest.mark.parametrize("way", ["arrivals", "replay"])
@pytest.mark.parametrize("name", [5, b"log", object(), "a" * 300, "a\0b", "/nowhere/log"])
def test_names_that_no_file_has_are_refused(name: Any, way: str) -> None:
    with pytest.raises(DataError, match=r"give the name of a file|cannot (read|write) the log of arrivals"):
        trained(1, **{way: name})


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    log, copy = tmp_path / "arrivals.jsonl", tmp_path / "copy.jsonl"
    trained(1, arrivals=log)
    text = log.read_text()
    with pytest.raises(DataError, match=r"there is a file .* already; replay it, or log arrivals to another"):
        trained(1, arrivals=log)
    assert log.read_text() == text
    with pytest.raises(DataError, match=r"has 4 iterations, but this is number 5; train for fewer"):
        trained(2, replay=log)
    with pytest.raises(DataError, match="cannot read the log of arrivals"):
        trained(1, replay=copy)
    first = text.splitlines()[1]
    for wrong, message in (
        ("", "ends within a line"),
        (text[:-1], "ends within a line"),
        (text.replace("fc_bias", "fc_bios"), "is of another model or another number of workers"),
        (text.replace('"workers": 4', '"workers": 3'), "is of another model or another number of workers"),
        (
            text.replace(first, "[[0, 1, 2, 2], [0, 1, 2, 3]]"),
            "line .* must list 2 orders, each with the work",
        ),
        (text.replace(first, "[[0, 1, 2, 3]]"), "line .* must list 2 orders"),
        (text.replace(first, "[[0, 1, 2, true], [0, 1, 2, 3]]"), "line .* must list 2 orders"),
        (text.replace(first, "[[0, 1, 2, 3"), "line .*: it is not JSON"),
    ):
        copy.write_text(wrong)
        with pytest.raises(DataError, match=message):
            trained(1, replay=copy)


def test_cards_and_processes_only_replay() -> None:
    from tofu.programs.memory import plan_memory
    from tofu.runtime.choose_engine import engine_on
    from tofu.runtime.engine import Watch

    program = tofu.lower(PLAN.graph or GRAPH, PLAN)
    make = engine_on([tofu.gpu(0)] * 4)
    with pytest.raises(ExecutionError, match="noted on the processor; replay a log of arrivals on cards"):
        make(program, plan_memory(program), Watch(1.0, note_arrivals=True))

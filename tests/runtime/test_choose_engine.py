"""The engine that devices ask for, and what no engine takes."""

from __future__ import annotations

from typing import Any

import pytest

from tofu.errors import ExecutionError
from tofu.programs.memory import plan_memory
from tofu.runtime.choose_engine import engine_on
from tofu.runtime.context import Context, cpu, gpu
from tofu.runtime.engine import Watch
from tofu.runtime.numpy_engine import NumpyEngine


def test_the_processor_runs_programs_of_any_number_of_workers(toys: Any) -> None:
    _, partitioned, _ = toys.random_toy(1, workers=2, operations=3)
    for devices in ((), (cpu(0),), (cpu(0), cpu(1))):
        engine = engine_on(devices, threads=1)(
            partitioned, plan_memory(partitioned), Watch(watchdog_seconds=60)
        )
        assert isinstance(engine, NumpyEngine)
        engine.close()


@pytest.mark.parametrize("devices", [(cpu(0), gpu(0)), (gpu(1), cpu(0), gpu(0)), (Context("tpu"),)])
def test_other_devices_are_refused(devices: tuple[Context, ...]) -> None:
    with pytest.raises(ExecutionError, match="give a context of one kind"):
        engine_on(devices)


def test_threads_below_one_are_refused() -> None:
    with pytest.raises(ExecutionError, match=r"threads is 0 .*an integer from 1 on"):
        engine_on([cpu()], threads=0)

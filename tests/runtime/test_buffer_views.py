"""Parts of buffers are views, in the coordinates of the whole tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tofu.programs.program import Compute
from tofu.runtime.buffer_views import BufferViews


def numbered(partitioned: Any) -> Any:
    """Arrays for all buffers that hold their elements' indices in the tensor."""
    return BufferViews(
        partitioned,
        [
            [np.arange(*buffer.region[0], dtype=float) for buffer in program.buffers]
            for program in partitioned.programs
        ],
    )


def test_parts_are_views_of_the_region(toys: Any) -> None:
    _, partitioned, _ = toys.random_toy(3, workers=3, operations=6)
    views = numbered(partitioned)
    for worker, program in enumerate(partitioned.programs):
        for number, buffer in enumerate(program.buffers):
            lower, upper = buffer.region[0]
            assert views.part(worker, number, buffer.region) is views.views[worker][number]
            part = views.part(worker, number, ((lower + 1, upper),))
            np.testing.assert_array_equal(part, np.arange(lower + 1, upper))
            assert part.size == 0 or np.shares_memory(part, views.views[worker][number])


def test_a_call_has_the_regions_that_are_read(toys: Any) -> None:
    _, partitioned, _ = toys.random_toy(5, workers=2, operations=8)
    views = numbered(partitioned)
    for worker, program in enumerate(partitioned.programs):
        for instruction in program.instructions:
            if isinstance(instruction, Compute):
                call = views.call(worker, instruction)
                assert tuple(call.box.values()) == instruction.box
                for name, (interval,) in call.regions.items():
                    np.testing.assert_array_equal(call.inputs[name], np.arange(*interval))
                for output, buffer in zip(call.outputs, instruction.outputs, strict=True):
                    assert output is views.views[worker][buffer]

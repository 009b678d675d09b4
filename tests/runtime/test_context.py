"""The devices of workers, as users list them."""

from __future__ import annotations

from typing import Any

import pytest

from tofu.errors import ExecutionError
from tofu.runtime.context import Context, cpu, devices_of, gpu


def test_every_entry_is_a_worker() -> None:
    assert devices_of(None) == (Context("cpu", 0),)
    assert devices_of(gpu(2)) == (Context("gpu", 2),)
    assert devices_of([cpu(), cpu(), gpu(1)]) == (Context("cpu"), Context("cpu"), Context("gpu", 1))
    assert str(gpu(1)) == "gpu(1)"


@pytest.mark.parametrize("context", [4, ["cpu"], "cpu(0)", {cpu()}])
def test_what_is_not_a_list_of_devices_is_refused(context: Any) -> None:
    with pytest.raises(ExecutionError, match="lists a device for each worker"):
        devices_of(context)


def test_no_device_is_refused() -> None:
    with pytest.raises(ExecutionError, match="names no device"):
        devices_of([])

"""Write machines whose devices are of one kind and form one level, as machine files."""

from __future__ import annotations

from pathlib import Path

from ..errors import MachineError
from ..support.saved_files import save_whole
from .machine import Machine


def save_machine(machine: Machine, path: Path) -> None:
    """Write a machine file, or leave the file unchanged.

    Raises MachineError if it cannot be written, or if its name does not end in `.yaml` or `.yml`.
    """
    if path.suffix not in (".yaml", ".yml"):
        raise MachineError(f"{str(path)!r} is not the name of a machine file; it must end in .yaml or .yml")
    save_whole(path, machine_text(machine).encode(), "the machine file", MachineError)


def machine_text(machine: Machine) -> str:
    """Return the machine file of a machine whose devices are of one kind and form one level."""
    (kind,), (level,) = set(machine.kinds), machine.levels
    rates = ", ".join(f"{dtype}: {rate / 1e9:.4g} GFLOP/s" for dtype, rate in kind.flops_per_second)
    lines = [
        f"machine: {machine.name}",
        f"kind: {kind.name}",
        "kinds:",
        f"  {kind.name}:",
        f"    memory_bandwidth: {kind.bytes_per_second / 1e9:.4g} GB/s",
        f"    rates: {{{rates}}}",
        f"    kernel_start: {_microseconds(kind.start_seconds)}",
        f"    in_turn: {str(kind.in_turn).lower()}",
        f"    wake: {_microseconds(kind.wake_seconds)}",
        *([f"    process: {str(kind.process).lower()}"] if kind.process else []),
        "levels:",
        f"  - {{name: {level.name}, bandwidth: {level.bytes_per_second / 1e9:.4g} GB/s, "
        f"latency: {_microseconds(level.latency_seconds)}}}",
        f"devices: [{', '.join(machine.devices)}]",
    ]
    if kind.memory_bytes is not None:
        lines.insert(4, f"    memory: {kind.memory_bytes} B")
    return "\n".join(lines) + "\n"


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us" if seconds else "0"

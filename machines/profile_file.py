"""Profiles in files: JSON next to the machine file, read with distrust and written whole or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ..errors import MachineError, PlanError
from ..operators.kernels_version import kernels_version
from ..support.saved_files import save_whole
from ..support.strict_documents import (
    any_number,
    expect_keys,
    number_between,
    read_document,
    typed,
    typed_object,
)
from .profile import AnyHost, CardHost, EngineTimes, Host, MeasuredTime, Profile, Sizes, WakeTime

FORMAT = 1
LARGEST = 1 << 62
LONGEST_SECONDS = 1e6
THREAD_LIMIT = 4096
HOSTS: dict[str, type[AnyHost]] = {"numpy": Host, "processes": Host, "cuda": CardHost}
"""The class of the host of each engine's times."""


def profile_path(machine: Path) -> Path:
    """Return the path of the profile that belongs to a machine file: `box.profile.json` to `box.yaml`."""
    return machine.with_name(f"{machine.stem}.profile.json")


def load_profile(path: Path, machine: str) -> Profile:
    """Read the profile of a machine.

    Raises MachineError naming the place if the file is malformed or empty, or naming both values if its
    times are those of another machine or of another version of the kernels.
    """
    value = read_document(path, "profile", MachineError)
    try:
        found = _profile(value, str(path))
    except PlanError as error:
        raise MachineError(f"the profile {str(path)!r} cannot be used: {error}") from error
    if found.machine != machine:
        raise MachineError(
            f"the profile {str(path)!r} was measured on machine {found.machine!r}, but the machine file next "
            f"to it describes {machine!r}; measure with `tofu profile`, or delete the profile"
        )
    here = kernels_version(found.engines[0].engine)
    if found.host.kernels != here:
        raise MachineError(
            f"the profile {str(path)!r} has times of kernels {found.host.kernels}, but this version of Tofu "
            f"has kernels {here}; delete the profile and measure again with `tofu profile`"
        )
    return found


def save_profile(profile: Profile, path: Path) -> None:
    """Write a profile, or leave the file unchanged. Raises MachineError if it cannot be written."""
    document = {
        "format": FORMAT,
        "machine": profile.machine,
        "measured_on": asdict(profile.host),
        "engines": [_engine_document(each) for each in profile.engines],
    }
    text = json.dumps(document, separators=(",", ":")) + "\n"
    save_whole(path, text.encode(), "the profile", MachineError)


def _engine_document(times: EngineTimes) -> dict[str, Any]:
    kinds = {
        kind: [
            [list(sizes), list(each.amounts), each.seconds, each.spread_seconds]
            for sizes, each in by_size.items()
        ]
        for kind, by_size in times.kinds.items()
    }
    return {
        "engine": times.engine,
        "threads": times.threads,
        "kernel_threads": times.kernel_threads,
        "wakes": [times.wakes.count, times.wakes.seconds],
        "kinds": kinds,
    }


def _profile(value: object, path: str) -> Profile:
    entry = typed_object(value, "the file")
    if "format" in entry and entry["format"] != FORMAT:
        raise PlanError(f"its format is {str(entry['format'])[:20]}, but this version of Tofu reads {FORMAT}")
    expect_keys(entry, ("format", "machine", "measured_on", "engines"), "the file")
    engines = tuple(
        _engine(each, f"engines[{number}]")
        for number, each in enumerate(typed(entry["engines"], list, "engines"))
    )
    if not engines:
        raise PlanError("it has no times; measure some with `tofu profile`")
    settings = [each.threads for each in engines]
    for threads in settings:
        if settings.count(threads) > 1:
            raise PlanError(f"engines has two entries for {threads} threads; keep one")
    names = [each.engine for each in engines]
    for number, name in enumerate(names):
        if name not in HOSTS or name != names[0]:
            expected = names[0] if names[0] in HOSTS else " or ".join(HOSTS)
            raise PlanError(f"engines[{number}].engine is {name[:60]!r}; it must be {expected}")
    host = _host(entry["measured_on"], HOSTS[names[0]])
    return Profile(typed(entry["machine"], str, "machine"), host, engines, path)


def _host(value: object, kind: type[AnyHost]) -> AnyHost:
    entry = typed_object(value, "measured_on")
    expect_keys(entry, tuple(field.name for field in fields(kind)), "measured_on")
    parts: dict[str, Any] = {}
    for field in fields(kind):
        place = f"measured_on.{field.name}"
        if field.type == "int":
            parts[field.name] = number_between(entry[field.name], place, 1, THREAD_LIMIT)
        else:
            parts[field.name] = typed(entry[field.name], str, place)
    return kind(**parts)


def _engine(value: object, place: str) -> EngineTimes:
    entry = typed_object(value, place)
    expect_keys(entry, ("engine", "threads", "kernel_threads", "wakes", "kinds"), place)
    kinds = typed_object(entry["kinds"], f"{place}.kinds")
    if not kinds:
        raise PlanError(f"{place}.kinds has no times; measure some with `tofu profile`")
    return EngineTimes(
        typed(entry["engine"], str, f"{place}.engine"),
        number_between(entry["threads"], f"{place}.threads", 1, THREAD_LIMIT),
        number_between(entry["kernel_threads"], f"{place}.kernel_threads", 1, THREAD_LIMIT),
        _wakes(entry["wakes"], f"{place}.wakes"),
        {kind: _by_size(rows, f"{place}.kinds[{_short(kind)!r}]") for kind, rows in kinds.items()},
    )


def _wakes(value: object, place: str) -> WakeTime:
    parts = typed(value, list, place)
    if len(parts) != 2:
        raise PlanError(f"{place} has {len(parts)} entries, not 2: a number and the mean of their seconds")
    return WakeTime(number_between(parts[0], f"{place}[0]", 0, LARGEST), _seconds(parts[1], f"{place}[1]"))


def _by_size(value: object, place: str) -> dict[Sizes, MeasuredTime]:
    found: dict[Sizes, MeasuredTime] = {}
    for number, row in enumerate(typed(value, list, place)):
        where = f"{place}[{number}]"
        parts = typed(row, list, where)
        if len(parts) != 4:
            raise PlanError(
                f"{where} has {len(parts)} entries, not 4: sizes, amounts, seconds and their spread"
            )
        sizes = _integers(parts[0], f"{where}[0]")
        if sizes in found:
            raise PlanError(f"{where} has the sizes of an entry before it")
        amounts = _integers(parts[1], f"{where}[1]")
        first = next(iter(found.values()), None)
        if first is not None and len(first.amounts) != len(amounts):
            raise PlanError(
                f"{where}[1] has {len(amounts)} amounts, but that of the first entry {len(first.amounts)}"
            )
        seconds = _seconds(parts[2], f"{where}[2]")
        if not seconds:
            raise PlanError(f"{where}[2] is 0 seconds; a time is longer")
        found[sizes] = MeasuredTime(seconds, _seconds(parts[3], f"{where}[3]"), amounts)
    if not found:
        raise PlanError(f"{place} has no times")
    return found


def _integers(value: object, place: str) -> Sizes:
    return tuple(number_between(each, place, 0, LARGEST) for each in typed(value, list, place))


def _seconds(value: object, place: str) -> float:
    number = any_number(value, place)
    if not 0 <= number <= LONGEST_SECONDS:
        raise PlanError(f"{place} is {number}; it must lie between 0 and {LONGEST_SECONDS:.0f} seconds")
    return number


def _short(kind: str) -> str:
    return kind.partition("(")[0].removeprefix("def ")[:60]

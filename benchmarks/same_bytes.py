"""Whether a change leaves plans, programs and memory plans as they were, byte by byte.

python -m benchmarks.same_bytes FOLDER             writes FOLDER/same_bytes.json
python -m benchmarks.same_bytes --compare A B      compares two such files

Every model of the zoo is planned by every method, with small batches and few time steps, and lowered. The
file keeps a hash of every case's plan file, programs, memory plan and waits. Run it on the commit before a
change and on the one after it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import tofu
from tofu.models.zoo import family, names
from tofu.programs import plan_memory, schedule

from .space import PAPER

WORKERS = (2, 3, 8)
BATCH = 8
STEPS = 3
METHODS = ("recursive", "refine", "all-row", "spartan", "equal-chop", "icml18", "data-parallel")
EXACT = ("mlp", "lenet", "alexnet", "vgg-11", "vgg-16", "wresnet-10-2")
"""Models whose exact search takes seconds."""

TIMED = ("mlp", "vgg-11", "wresnet-10-2", "rnn-6-4k", "lstm")
"""Models that are planned for the time over a machine's links as well."""

MACHINE = "dgx-1-v100"

Case = dict[str, str]


def cases(only: list[str]) -> Iterator[tuple[str, Case]]:
    """Yield the hashes of every case, by a name that says model, workers and method."""
    for name in only or names():
        options = {"steps": STEPS} if "steps" in family(name).options else {}
        graph = tofu.models.get(name, batch=BATCH, **options).training_graph()
        for workers in WORKERS:
            methods: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in METHODS]
            if name in EXACT:
                methods.append(("exact", {}))
            if name in TIMED:
                timed = {"objective": "time", "machine": MACHINE}
                methods += [("recursive", timed), ("refine", timed), ("equal-chop", timed)]
            for method, settings in methods:
                what = f"{name} {workers} {method}" + (" time" if settings else "")
                yield (
                    what,
                    _hashes(
                        graph,
                        tofu.partition(graph, workers, method, **PAPER, **settings),
                    ),
                )


def _hashes(graph: Any, plan: Any) -> Case:
    program = tofu.lower(graph, plan)
    memory = plan_memory(program)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        plan.save(path)
        written = path.read_bytes()
    kept = memory.offsets, memory.arena_bytes, [live.tolist() for live in memory.live_bytes]
    return {
        "plan": _hash(written),
        "program": _hash(_values((program.programs, program.homes, program.planned_bytes))),
        "memory": _hash(_values((kept, memory.largest, memory.peak_kinds))),
        "waits": _hash(_values(schedule(program, memory).waits)),
        "seconds": repr(plan.transfer_time),
    }


def _values(value: object) -> bytes:
    """Write a value without the names of its classes and fields, so that these may change."""
    return repr(_plain(value)).encode()


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return tuple([_plain(getattr(value, field.name)) for field in fields(value)])
    if isinstance(value, Mapping):
        return tuple([(_plain(key), _plain(each)) for key, each in value.items()])
    if isinstance(value, tuple | list):
        return tuple([_plain(each) for each in value])
    return value


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def compare(before: Path, after: Path) -> int:
    """Print what differs between two files. Returns the number of differences."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    different = 0
    for case in sorted(old.keys() | new.keys()):
        one, other = old.get(case), new.get(case)
        if one is None or other is None:
            print(f"{case}: only in {before if other is None else after}")
            different += 1
            continue
        for part in one:
            if one[part] != other.get(part):
                print(f"{case}: the {part} differs")
                different += 1
    print(f"{len(old.keys() & new.keys())} cases in both, {different} differences")
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="two such files")
    parser.add_argument("--only", nargs="*", default=[], choices=names(), metavar="MODEL")
    arguments = parser.parse_args()
    for path in arguments.compare or ():
        if not path.is_file():
            parser.error(f"there is no file {str(path)!r}")
    if arguments.compare:
        sys.exit(compare(*arguments.compare) > 0)
    if arguments.folder is None:
        parser.error("name a folder, or two files to compare")
    if not arguments.folder.is_dir():
        parser.error(f"there is no folder {str(arguments.folder)!r}")
    found = dict(cases(arguments.only))
    path = arguments.folder / "same_bytes.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} cases in {path}")


if __name__ == "__main__":
    main()

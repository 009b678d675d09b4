"""Kernels that move data compile for every architecture, and their structs are laid out as on the host."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tofu.operators.cuda.transfers.transfer_units import Unit, copy_unit, fill_unit, reduce_unit, units_source
from tofu.operators.emit.kernel import OPTIONS
from tofu.tdl.ast import AnyReducer, Reducer

from ..compilers import COMPILERS, NVCC, Compiler, compilers_for
from ..moving import COMPOUND, REDUCERS, TYPES, custom, units

ARCHITECTURES = ("70", "75", "80", "90")


def check(chosen: list[Unit], compiler: Compiler, architecture: str, folder: Path) -> None:
    functions = {unit.function(narrow) for unit in chosen for narrow in (True, False)}
    compiled = compiler.compile(units_source(chosen), architecture, folder)
    assert not compiled.messages, f"{compiler.name}: {compiled.messages[:4000]}"
    assert compiled.entries(functions) == functions, compiler.name


@pytest.mark.parametrize("architecture", ["70", "90"])
def test_sample(tmp_path: Path, architecture: str) -> None:
    """With a reduction for one of them; it takes longer."""
    chosen: list[tuple[AnyReducer, str]] = [(COMPOUND, "float32")] if architecture == "90" else []
    check(units(chosen), compilers_for(architecture)[-1], architecture, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("type", TYPES)
def test_every_reducer(tmp_path: Path, architecture: str, type: str) -> None:
    for compiler in compilers_for(architecture):
        check(units([(reducer, type) for reducer in REDUCERS]), compiler, architecture, tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: str(compiler.name))
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    long long first_block, count;", "    long long count, first_block;"),
        ("    Cell cells[8];", "    Cell cells[7];"),
        ("    unsigned multiplier, shift;", "    unsigned shift, multiplier;"),
    ],
)
def test_a_wrong_layout_does_not_compile(compiler: Compiler, tmp_path: Path, old: str, new: str) -> None:
    source = fill_unit().source
    assert old in source
    messages = compiler.compile(source.replace(old, new), "90", tmp_path).messages
    assert "static assertion failed" in messages


@pytest.mark.skipif(NVCC is None, reason="nvcc is not on the path")
def test_four_words_are_read_before_any_is_written(tmp_path: Path) -> None:
    """Neither the order of the accesses nor their width is left to luck."""
    file, listing = tmp_path / "copy.cu", tmp_path / "copy.ptx"
    file.write_text(copy_unit().source, encoding="utf-8")
    subprocess.run([str(NVCC), *OPTIONS, "-arch=sm_90", "-ptx", str(file), "-o", str(listing)], check=True)
    text = listing.read_text(encoding="utf-8")
    body = text[text.index(f".entry {copy_unit().function(True)}") :]
    accesses = re.findall(r"\b(ld|st)\.global\.(v4\.u32|v2\.u32|u32|u16|u8)", body)[:40]
    runs = ["".join(kind for kind, _ in accesses[start : start + 8]) for start in range(0, 40, 8)]
    assert runs == ["ldldldldstststst"] * 5
    assert {width for _, width in accesses} == {"v4.u32", "v2.u32", "u32", "u16", "u8"}


def test_structs_are_small() -> None:
    """All architectures and drivers take 4 KiB of arguments."""
    every = (copy_unit(), fill_unit(), reduce_unit(Reducer.SUM, "float32"))
    for unit in every:
        assert unit.dtype.itemsize <= 4096
        assert unit.dtype == np.dtype(unit.dtype.descr), "there is padding"
    assert copy_unit().dtype.itemsize == 1600


def test_a_unit_has_one_text_and_no_other_has_its_name() -> None:
    assert reduce_unit(Reducer.SUM, "float16") is reduce_unit(Reducer.SUM, "float16")
    assert reduce_unit(custom("lambda l, r: l + r + 0.25 * l * r, 0"), "float16") is reduce_unit(
        COMPOUND, "float16"
    )
    chosen = units([(reducer, type) for reducer in REDUCERS for type in TYPES])
    assert len({unit.name for unit in chosen}) == len(chosen) == 2 + 36
    assert len({unit.source for unit in chosen}) == len(chosen)


def test_accumulation() -> None:
    totals = {type: reduce_unit(Reducer.SUM, type).body.split(", ")[2] for type in TYPES}
    wide = {"float64": "double", "int32": "long long", "int64": "long long"}
    assert totals == {type: wide.get(type, "float") for type in TYPES}
    assert reduce_unit(COMPOUND, "int32").body.split(", ")[2] == "double"

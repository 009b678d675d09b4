"""Kernels that move data, each with one thing wrong, are refused by the checks of random boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tofu.operators.cuda.transfers.transfer_units import Unit, copy_unit, fill_unit, reduce_unit
from tofu.tdl.ast import Reducer

from ..card import PREFIX, Card, callers
from ..forked import fails
from ..machine import load
from ..moving import check_fetch, check_fill, check_reduce, generators

SUM = (Reducer.SUM, "float32")
COPIES = {
    "every word is written": ("if (words.inside(cell, word)) *reinterpret", "*reinterpret"),
    "the outermost stride is another": ("rest[word] * Index(strides[0])", "rest[word] * Index(strides[1])"),
    "an axis forgotten": ("number > 0; --number", "number > 1; --number"),
    "quotient for remainder": ("(rest[word] - outer * length) * stride", "rest[word] * stride"),
    "the next axis continues": ("rest[word] = outer;", ""),
    "divided by more": (">> axis.shift)", ">> (axis.shift + 1))"),
    "another length in 64 bits": ("return position / axis.length;", "return position / (axis.length + 1);"),
    "all blocks begin together": ("(long long)blockIdx.x - cell.first_block", "(long long)blockIdx.x"),
    "the last block goes to the next cell": (
        "blockIdx.x >= cell[number + 1]",
        "blockIdx.x > cell[number + 1]",
    ),
    "blocks overlap": ("block * Index(words_each * block_threads)", "block * Index(block_threads)"),
    "threads overlap": ("start + word * Index(block_threads)", "start + word"),
    "half of a wide word": (
        "case 16: return copy_words<Index, Pack<unsigned, 4>>",
        "case 16: return copy_words<Index, Pack<unsigned, 2>>",
    ),
    "a byte for two": (
        "case 2: return copy_words<Index, unsigned short>",
        "case 2: return copy_words<Index, char>",
    ),
    "read with the target's strides": (
        "places<count>(cell, source.strides,",
        "places<count>(cell, cell.strides,",
    ),
    "another cell's source": ("p.sources[number]", "p.sources[0]"),
}
REDUCTIONS = {
    "one word too many": ("return at[word] < Index(cell.count);", "return at[word] <= Index(cell.count);"),
    "another cell's terms": ("p.sources + number * terms", "p.sources + number"),
    "a term left out": ("for (int first = 0;", "for (int first = 1;"),
    "one term again and again": ("read(cell, sources[first + term],", "read(cell, sources[first],"),
    "one element for all": ("value[term][word].element[i]", "value[term][word].element[0]"),
    "one word for all": ("load(value[term][word]", "load(value[term][0]"),
    "one group of terms": ("first < terms; first", "first < 1; first"),
    "too many terms": ("if (first + term >= terms) break;", ""),
    "sums begin again": ("Reducer::combine(sum,", "Reducer::combine(Total(0),"),
}
FILLS = {
    "halves exchanged": ("Pack<unsigned, 2>{{low, high}}", "Pack<unsigned, 2>{{high, low}}"),
    "half a pattern": ("{{low, high, low, high}}", "{{low, low, low, low}}"),
}


@dataclass(frozen=True)
class Subject:
    """A unit, the check of one random box, and bugs: what of the source becomes what else."""

    unit: Unit
    check: Callable[[Card, np.random.Generator], None]
    bugs: Mapping[str, tuple[str, str]]

    def passes(self, card: Card) -> None:
        for rng in generators(60):
            self.check(card, rng)


SUBJECTS = (
    Subject(copy_unit(), check_fetch, COPIES),
    Subject(reduce_unit(*SUM), lambda card, rng: check_reduce(card, *SUM, rng), REDUCTIONS),
    Subject(fill_unit(), check_fill, FILLS),
)
BUGS = [(subject, name) for subject in SUBJECTS for name in ("", *subject.bugs)]


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Card]:
    """All sources compiled together, each with separate names."""
    sources = []
    for number, (subject, name) in enumerate(BUGS):
        old, new = subject.bugs.get(name, ("", ""))
        text = "\n".join([subject.unit.source, *callers((subject.unit,))])
        assert old in text, f"{name}: the source has no {old!r}"
        sources.append(text.replace(old, new, 1).replace(PREFIX, f"{PREFIX}{number}"))
    library = load("\n".join(sources), tmp_path_factory.mktemp("bugs"), "-O0")
    return {
        (subject.unit.name, name): Card(library, (subject.unit,), f"{PREFIX}{number}")
        for number, (subject, name) in enumerate(BUGS)
    }


@pytest.mark.parametrize(
    ("subject", "name"), BUGS, ids=lambda part: part if isinstance(part, str) else part.unit.name
)
def test_a_bug_is_seen(cards: Any, subject: Subject, name: str) -> None:
    """The source as it is, without a name, passes."""
    card = cards[subject.unit.name, name]
    assert fails(lambda: subject.passes(card)) == bool(name)

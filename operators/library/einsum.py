"""einsum: sums of products over named dimensions, as `numpy.einsum` writes them.

Several operands are multiplied from left to right, each product a stage with strategies of its own. A stage
sums over the dimensions that nothing after it mentions. So give operands in an order of small products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ...support.wording import counted
from ..operator import Example, Operator
from ..stages.attributes import Attributes, AttributeSpec, AttributeType, count
from ..stages.definition import ByShape, Variant, variant
from .arguments import numbered
from .texts import element, joined

ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class _Subscripts:
    """The dimensions of the operands and of the result, as index variables."""

    terms: tuple[tuple[str, ...], ...]
    """The variables of each operand."""

    result: tuple[str, ...]
    """The variables of the result."""


def _refusal(subscripts: str, why: str) -> OperatorError:
    return OperatorError(f"einsum: subscripts={subscripts!r:.80}: {why}")


def _read(subscripts: str, ranks: Sequence[int | None]) -> _Subscripts:
    """Return the variables that letters and ellipses stand for; operands with an ellipsis have a rank.

    Raises OperatorError for subscripts that are malformed or do not fit the ranks.
    """
    given, arrow, wanted = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(ranks):
        raise _refusal(subscripts, f"they name {len(terms)} operands, but {len(ranks)} are given")
    if "" in terms:
        raise _refusal(subscripts, "an operand without letters is a number; multiply by it instead")
    for term in (*terms, wanted):
        letters = term.replace(ELLIPSIS, "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise _refusal(subscripts, f"{term!r:.80} must be letters, with at most one '...'")
    written = given.replace(ELLIPSIS, "").replace(",", "")
    if not arrow:
        wanted = ELLIPSIS * (ELLIPSIS in given)
        wanted += "".join(sorted(letter for letter in set(written) if written.count(letter) == 1))
    for letter in wanted.replace(ELLIPSIS, "", 1):
        if letter not in written or wanted.count(letter) > 1:
            raise _refusal(
                subscripts, f"{letter!r} must be in an operand, and only once in the result {wanted!r:.80}"
            )
    hidden = [_hidden(subscripts, term, rank) for term, rank in zip(terms, ranks, strict=True)]
    most = max(hidden)
    if (ELLIPSIS in wanted) < bool(most) or (ELLIPSIS in wanted) > (ELLIPSIS in given):
        raise _refusal(subscripts, "write '...' in the result if an operand has it, and only then")
    read = tuple(_variables(term, count) for term, count in zip(terms, hidden, strict=True))
    return _Subscripts(read, _variables(wanted, most))


def _hidden(subscripts: str, term: str, rank: int | None) -> int:
    """Return the number of dimensions that the ellipsis of a term stands for."""
    if ELLIPSIS not in term:
        return 0
    assert rank is not None, "an operand with an ellipsis has a known rank"
    letters = len(term) - len(ELLIPSIS)
    if rank < letters:
        raise _refusal(subscripts, f"{term!r:.80} does not fit an operand with {counted(rank, 'dimension')}")
    return rank - letters


def _variables(term: str, hidden: int) -> tuple[str, ...]:
    """Return the variable of each dimension; those of an ellipsis are counted from the last one."""
    before, ellipsis, after = term.partition(ELLIPSIS)
    return (
        *(f"v_{letter}" for letter in before),
        *(f"e{place}" for place in reversed(range(hidden if ellipsis else 0))),
        *(f"v_{letter}" for letter in after),
    )


def _einsum(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the stages; `shapes` has those of all operands if there is an ellipsis."""
    operands = _operands(attributes)
    ranks = [len(shapes[name]) if name in shapes else None for name in operands]
    read = _read(attributes.text("subscripts"), ranks)
    lines: list[str] = []
    product = ""
    own: tuple[str, ...] = ()
    for place, (operand, term) in enumerate(zip(operands, read.terms, strict=True)):
        factor = element(operand, term or ("()",))
        product = f"{product} * {factor}" if product else factor
        own = tuple(dict.fromkeys((*own, *term)))
        if 0 < place < len(operands) - 1:
            later = {name for rest in read.terms[place + 1 :] for name in rest} | set(read.result)
            kept = tuple(name for name in own if name in later)
            stage = f"product{place}"
            lines.append(f"    {stage} = lambda {joined(kept) or 'one=1'}: {_summed(own, kept, product)}")
            product, own = element(stage, kept or ("0",)), kept
    lines.append(f"    return lambda {joined(read.result) or 'one=1'}: {_summed(own, read.result, product)}")
    return variant(f"def einsum({joined(operands)}):\n" + "\n".join(lines))


def _summed(own: Sequence[str], kept: Sequence[str], product: str) -> str:
    over = [name for name in own if name not in kept]
    return f"Sum(lambda {joined(over)}: {product})" if over else product


_operands = numbered("num_args", "arg")


def _with_ranks(attributes: Attributes) -> tuple[str, ...]:
    """Return the operands if the description depends on their ranks: if there is an ellipsis."""
    return _operands(attributes) if ELLIPSIS in attributes.text("subscripts") else ()


OPERATORS = (
    Operator(
        name="einsum",
        definition=ByShape(_einsum, of=_with_ranks),
        argument_names=_operands,
        specs=(
            AttributeSpec("subscripts", AttributeType.TEXT, required=True),
            count("num_args"),
        ),
        count_attribute="num_args",
        example=Example(
            {"arg0": (2, 3, 4), "arg1": (2, 4, 5)}, {"subscripts": "bik,bkj->bij", "num_args": 2}
        ),
    ),
)

"""The operators of the library: how each operator can be expressed, counted from its analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .. import tdl
from ..operators.library import registry
from ..operators.operator import Operator
from ..operators.stages.build_stages import produced_shapes
from ..operators.stages.stage import Stage

PAPER: Mapping[str, int] = MappingProxyType(
    {"total": 139, "describable": 134, "elementwise": 77, "opaque": 2, "output_reduction": 11}
)
"""Section 4.3 of the paper, of MXNet 0.11 operators; which ones it counted cannot be reconstructed."""

WIDTH = 100
"""Characters of an expression in a table."""


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """One operator at the shapes of its example."""

    name: str
    """The operator's name."""

    aliases: tuple[str, ...]
    """Its other names."""

    attributes: tuple[str, ...]
    """The names of its attributes."""

    stages: int
    """The number of its stages."""

    elementwise: bool
    """Whether every stage computes each element from the elements at the same place."""

    opaque: bool
    """Whether a stage calls an opaque function."""

    output_reduction: bool
    """Whether a stage offers a `reduce` strategy."""

    expression: str
    """The description of its last stage, in TDL."""

    @property
    def kind(self) -> str:
        """In words, for a table."""
        words = {"opaque": self.opaque, "element-wise": self.elementwise, "reduction": self.output_reduction}
        return ", ".join(word for word, holds in words.items() if holds)


def operator_facts() -> list[OperatorFacts]:
    """Return the facts of every operator of the library, by name."""
    return [facts_of(registry.get(name)) for name in registry.names()]


def facts_of(operator: Operator) -> OperatorFacts:
    """Return the facts of one operator, from the analysis of its stages at the example's shapes."""
    example = operator.example
    assert example is not None, f"{operator.name} has no example"
    stages = operator.stages(example.attributes, example.shapes)
    known = produced_shapes(stages, example.shapes)
    bounds = [stage.bind({name: known[name] for name in stage.inputs}) for stage in stages]
    return OperatorFacts(
        name=operator.name,
        aliases=tuple(sorted(operator.aliases)),
        attributes=tuple(spec.name for spec in operator.specs),
        stages=len(stages),
        elementwise=all(bound.elementwise for bound in bounds),
        opaque=any(stage.description.opaques for stage in stages),
        output_reduction=any(s.kind == "reduce" for bound in bounds for s in bound.strategies),
        expression=_expression(stages[-1]),
    )


def _expression(stage: Stage) -> str:
    """Return what a stage returns, on one line, cut if it is long."""
    _, returned = tdl.format(stage.description).split("return ", 1)
    line = " ".join(returned.split()).replace("( ", "(")
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}..."


def counts(facts: Sequence[OperatorFacts]) -> dict[str, int]:
    """Return how many operators there are, and how many of each kind; an operator may be of several."""
    return {
        "total": len(facts),
        "describable": sum(not each.opaque for each in facts),
        "elementwise": sum(each.elementwise for each in facts),
        "opaque": sum(each.opaque for each in facts),
        "output_reduction": sum(each.output_reduction for each in facts),
    }


def markdown(facts: Sequence[OperatorFacts]) -> str:
    """Return the page `docs/operators.md`."""
    own = counts(facts)
    rows = [
        "# Operators",
        "",
        "Every operator of the library under its MXNet name, as `tofu operators --markdown` writes it.",
        "`tofu describe NAME` shows the whole description with its strategies.",
        "",
        "| | this library | the paper, section 4.3 |",
        "|---|---|---|",
        *(f"| {key.replace('_', ' ')} | {own[key]} | {PAPER[key]} |" for key in own),
        "",
        "These counts come from the analysis of each operator's example. An operator is element-wise if",
        "all its stages are. It has an output reduction if a stage offers a `reduce` strategy, and is",
        "opaque if a stage calls an opaque function. This list is longer than the paper's, which does not",
        "say which operators it counted.",
        "",
        "| operator | also called | attributes | kind | last stage |",
        "|---|---|---|---|---|",
        *map(_row, facts),
        "",
        "Not supported: "
        + "; ".join(f"`{name}`, because {reason}" for name, reason in registry.REFUSED.items())
        + ".",
    ]
    return "\n".join(rows) + "\n"


def _row(facts: OperatorFacts) -> str:
    cells = (
        f"`{facts.name}`",
        ", ".join(f"`{alias}`" for alias in facts.aliases),
        ", ".join(facts.attributes),
        facts.kind,
        f"`{facts.expression}`".replace("|", "\\|"),
    )
    return f"| {' | '.join(cells)} |"

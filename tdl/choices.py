"""Choices: attributes whose values are words, such as `mode="edge"`.

A text compares a choice with words. It may be its default and every word that it is compared with. When a
description is bound, each comparison is decided, and of `x if mode == "edge" else y` one side is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from .ast import Binary, Call, Choice, Description, Expression, Number, Unary
from .traverse import Node, tensors_in, transform, walk


@cache
def choices_of(description: Description) -> Mapping[str, tuple[str, ...]]:
    """Return by attribute the words that it may be, the default first."""
    found = {
        each.name: {each.default: None} for each in description.attributes if isinstance(each.default, str)
    }
    for node in walk(description):
        if isinstance(node, Choice) and node.attribute in found:
            found[node.attribute][node.value] = None
    return {name: tuple(words) for name, words in found.items()}


def is_choice(node: Expression) -> bool:
    """Return whether a condition is made of comparisons of choices alone."""
    match node:
        case Choice() | Number():
            return True
        case Unary("not", operand):
            return is_choice(operand)
        case Binary("and" | "or", left, right):
            return is_choice(left) and is_choice(right)
        case _:
            return False


def chosen(description: Description, words: Mapping[str, str]) -> Description:
    """Return the description for these words: without the attributes, and without stages that nothing reads.

    `words` has one of the words of `choices_of` for every choice.
    """
    if not words:
        return description

    def decide(node: Node) -> Node:
        match node:
            case Choice(attribute, value):
                return Number(int(words[attribute] == value), node.span)
            case Unary("not", Number(value)):
                return Number(int(not value), node.span)
            case Binary("and", Number(left), Number(right)):
                return Number(int(bool(left and right)), node.span)
            case Binary("or", Number(left), Number(right)):
                return Number(int(bool(left or right)), node.span)
            case Call("where", (Number(value), one, other)):
                return one if value else other
            case _:
                return node

    decided = transform(description, decide)
    read = set().union(*map(tensors_in, decided.outputs))
    kept = []
    for stage in reversed(decided.stages):
        if stage.name in read:
            kept.append(stage)
            read |= tensors_in(stage.value)
    attributes = tuple(each for each in decided.attributes if each.name not in words)
    return replace(decided, attributes=attributes, stages=tuple(reversed(kept)))

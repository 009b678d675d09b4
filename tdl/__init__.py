"""The Tensor Description Language: text to a checked syntax tree, and back."""

from .decorator import op_location
from .derivatives import derivative
from .functions import CONSTANTS, FUNCTIONS, ScalarFunction
from .interpreter import interpret
from .markers import Max, Min, Opaque, Prod, Reducer, Sum, pad
from .printer import format, format_expression, format_lambda
from .reducers import combiner
from .source import Diagnostic, SourceError, SourceText
from .syntax.parser import parse, parse_all, parse_expression
from .traverse import Node, children, custom_reducers, levels, rebuild, transform, walk

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "Diagnostic",
    "Max",
    "Min",
    "Node",
    "Opaque",
    "Prod",
    "Reducer",
    "ScalarFunction",
    "SourceError",
    "SourceText",
    "Sum",
    "children",
    "combiner",
    "custom_reducers",
    "derivative",
    "format",
    "format_expression",
    "format_lambda",
    "interpret",
    "levels",
    "op_location",
    "pad",
    "parse",
    "parse_all",
    "parse_expression",
    "rebuild",
    "transform",
    "walk",
]

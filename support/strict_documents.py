"""Read users' JSON and YAML files with distrust: strictly, with size limits, and without running anything.

The standard readers keep the last of two equal keys, accept NaN as a number, follow aliases that double in
size at every level, and raise a RecursionError on deep nesting. This module refuses all of that.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ..errors import PlanError, TofuError
from .document_place import DocumentPlace
from .opened_files import open_regular

JSON_LIMIT_BYTES = 64 << 20
YAML_LIMIT_BYTES = 64 << 10
"""Smaller than the limit for JSON, because YAML is parsed by Python code, which is slow."""

KIND_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


Kind = TypeVar("Kind", str, int, bool, list[object], dict[str, object])


def read_document(path: Path, what: str, error: type[TofuError] = PlanError) -> object:
    """Read the value in a file: YAML if the name ends in `.yaml` or `.yml`, JSON otherwise.

    Raises `error` naming `what` and the file.
    """
    yaml = path.suffix in (".yaml", ".yml")
    limit, advice = (YAML_LIMIT_BYTES, "; JSON may be larger") if yaml else (JSON_LIMIT_BYTES, "")
    data = read_bounded(path, what, error, limit, advice)
    try:
        return parse_yaml(data) if yaml else parse_json(data)
    except PlanError as failure:
        raise error(f"the {what} {str(path)!r} cannot be used: {failure}") from failure


def read_bounded(
    path: Path,
    what: str,
    error: type[TofuError] = PlanError,
    limit: int = JSON_LIMIT_BYTES,
    advice: str = "",
) -> bytes:
    """Read a file's contents, at most `limit` bytes. Raises `error` naming `what` and the file."""
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
    except OSError as failure:
        raise error(f"cannot read the {what} {str(path)!r}: {failure.strerror}") from failure
    if len(data) > limit:
        raise error(f"the {what} {str(path)!r} is larger than {limit} bytes{advice}")
    return data


def parse_json(data: bytes) -> object:
    """Parse a JSON text. Raises PlanError saying what is wrong with it."""
    try:
        parsed: object = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise PlanError("it is nested too deeply") from None
    except ValueError as error:
        raise PlanError(f"it is not JSON: {error}") from None
    return parsed


def parse_yaml(data: bytes) -> object:
    """Parse a YAML text: mappings, lists, strings, finite numbers, booleans and null.

    Raises PlanError saying what is wrong and in which line.
    """
    import yaml

    try:
        parsed: object = yaml.load(data.decode("utf-8"), _strict_loader())
    except RecursionError:
        raise PlanError("it is nested too deeply") from None
    except (ValueError, yaml.YAMLError) as error:
        raise PlanError(f"it is not valid YAML: {' '.join(str(error).split())}") from None
    return parsed


def _strict_loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise PlanError(f"line {self.peek_event().start_mark.line + 1} has an alias; write it out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for named, _ in node.value:
                key, line = self.construct_object(named, deep=True), named.start_mark.line + 1
                if not isinstance(key, str):
                    raise PlanError(f"line {line}: the key {key!r} is not a string; put it in quotes")
                if key in seen:
                    raise PlanError(f"line {line}: the key {key!r} occurs twice in one object; leave out one")
                seen.add(key)
            return super().construct_mapping(node, deep)

        def construct_yaml_float(self, node: Any) -> float:
            value = float(super().construct_yaml_float(node))
            return (
                value
                if math.isfinite(value)
                else _refuse_constant(f"line {node.start_mark.line + 1}: {node.value}")
            )

    Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_yaml_float)
    return Loader


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise PlanError(f"the key {key!r} occurs twice in one object")
            seen.add(key)
    return entries


def _refuse_constant(name: str) -> NoReturn:
    raise PlanError(f"{name} is not a number that a file may contain; write a finite one")


def typed(value: object, kind: type[Kind], place: str | DocumentPlace) -> Kind:
    """Return the value if it is of this kind. Raises PlanError naming its place if it is not."""
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
        raise PlanError(f"{place} is {_shown(value)}; it must be {KIND_NAMES[kind]}")
    return value


def typed_object(value: object, place: str | DocumentPlace) -> dict[str, object]:
    """Return an object's entries. Raises PlanError if the value is not an object."""
    return typed(value, dict, place)


def number_between(value: object, place: str | DocumentPlace, lowest: int, highest: int) -> int:
    """Return an integer in a range, ends included. Raises PlanError if the value is not one."""
    number = typed(value, int, place)
    if not lowest <= number <= highest:
        raise PlanError(f"{place} is {_shown(number)}; it must lie between {lowest} and {highest}")
    return number


def any_number(value: object, place: str | DocumentPlace) -> float:
    """Return a number, which may be infinite or NaN. Raises PlanError if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PlanError(f"{place} is {_shown(value)}; it must be a number")
    try:
        return float(value)
    except OverflowError:
        raise PlanError(f"{place} is too large for a number") from None


def finite_number(value: object, place: str | DocumentPlace) -> float:
    """Return a finite number of at least 0. Raises PlanError if the value is not one."""
    number = any_number(value, place)
    if not (math.isfinite(number) and number >= 0):
        raise PlanError(f"{place} is {number}; it must be finite and at least 0")
    return number


def expect_keys(
    entry: dict[str, object],
    keys: tuple[str, ...],
    place: str | DocumentPlace,
    optional: tuple[str, ...] = (),
) -> None:
    """Raise PlanError if a key is missing, or one is neither expected nor optional."""
    missing = [key for key in keys if key not in entry]
    unknown = [key for key in entry if key not in keys + optional]
    if missing or unknown:
        found = f"lacks {missing[0]!r}" if missing else f"has an unknown key {unknown[0]!r}"
        at = place if missing or isinstance(place, str) else place.at(str(unknown[0]))
        raise PlanError(f"{at} {found}; its keys are {', '.join(keys + optional)}")


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return KIND_NAMES[type(value)]
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."

"""A plan as one HTML file that needs nothing else: its data, its drawings, and the script that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files

from ...support.wording import counted
from .data import PageData

SCRIPTS = (
    "dom.js",
    "table.js",
    "names.js",
    "alternatives.js",
    "details.js",
    "header.js",
    "layers.js",
    "lists.js",
    "copies.js",
    "outcome.js",
    "page.js",
)


def render(page: PageData) -> str:
    """Return the file's text. Everything that comes from names or texts of the user is escaped."""
    parts = {
        "title": escape(
            f"{page.data['facts']['model']} over {counted(page.data['facts']['workers'], 'worker')}"
        ),
        "style": _asset("page.css"),
        "drawings": "".join(f'<symbol id="{name}" {body}</symbol>' for name, body in page.symbols.items()),
        "data": embedded(page.data),
        "script": "\n".join(map(_asset, SCRIPTS)),
    }
    before, *sections = _asset("page.html").split("{{")
    text = [before]
    for section in sections:
        name, _, rest = section.partition("}}")
        text += [parts[name], rest]
    return "".join(text)


def embedded(data: Mapping[str, object]) -> str:
    """Return JSON that ends no script element and begins no comment, whatever strings it holds."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")

"""The phrases that plain English rules out: neither documents nor the source have any."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

PHRASES = {
    r"(?<![Tt]here )\b(?:is|are)\sno [a-z]": "write 'is not a'",
    r"\bbeside\b": "write 'next to' or 'besides'",
    r"\bNone\swhere\b": "write 'if' for a condition",
    r"\bwhere\s(?:it|that|there|none) ": "write 'if' for a condition, or name the place",
    r",\salike\b": "write 'in the same way', or 'both'",
    r"\banew\b": "write 'again'",
    r"\bso\smany\b": "name the number",
    r'"""What\s': "begin with the thing itself",
    r"(?<=[.;] )(?:What|Whatever|Whether)\s[a-z][^.?]*\.(?!\w)": "name the thing that is the subject",
}


OPENINGS = re.compile(r"(A|All|An|As|Every|For|How|In|Not|Of|That|The|Those|What|Where|Whether|Why|With)\b")
"""Words with which a function's docstring cannot begin, because they are not verbs."""


def _joined(text: str) -> str:
    """Replace line breaks by spaces, so that a phrase is found across lines of prose or of a comment."""
    return re.sub(r"\s*\n\s*(?:#\s)?", " ", text)


def _found(text: str) -> Iterator[str]:
    """Yield every occurrence with the words around it and advice."""
    joined = _joined(text)
    for phrase, advice in PHRASES.items():
        for match in re.finditer(phrase, joined):
            around = joined[max(match.start() - 30, 0) : match.end() + 30]
            yield f"...{around}...: {advice}"


def _rooms() -> dict[str, list[Path]]:
    """Return the Python files of every folder at the root, and those at the root itself under "."."""
    rooms = {".": sorted(ROOT.glob("*.py"))}
    for folder in sorted(
        path
        for path in ROOT.iterdir()
        if path.is_dir() and path.name[0] != "." and path.name not in ("build", "dist")
    ):
        if files := sorted(folder.rglob("*.py")):
            rooms[folder.name] = files
    return rooms


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents(document: Path) -> None:
    """Code blocks are left out: what they print is the source's, which the other test counts."""
    text = document.read_text(encoding="utf-8")
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert list(_found(prose)) == []


@pytest.mark.parametrize("room", _rooms())
def test_source(room: str) -> None:
    """This file is left out: it quotes the phrases."""
    found = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in _rooms()[room]
        for place in _found(path.read_text(encoding="utf-8"))
        if path != Path(__file__)
    ]
    assert found == [], "\n".join(found)


def _nouns_first(text: str) -> Iterator[str]:
    """Yield the functions whose docstrings do not begin with a verb. Those of properties need none."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and not any(
            "property" in ast.unparse(d) for d in node.decorator_list
        ):
            opening = OPENINGS.match(ast.get_docstring(node) or "")
            if opening:
                yield f"{node.name}: {opening[0]} ..."


def test_functions_begin_with_a_verb() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {place}"
        for room, paths in _rooms().items()
        if room not in ("tests", "docs", "examples")
        for path in paths
        for place in _nouns_first(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "\n".join(found)
    assert list(_nouns_first("def f():\n    '''The sum.'''\n")) == ["f: The ..."]
    assert list(_nouns_first("@property\ndef f():\n    '''The sum.'''\n")) == []


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("is\nn", "o string"),
        ("be", "side"),
        ("None wh", "ere\n"),
        ("fails wh", "ere\nit"),
        (", al", "ike"),
        ("an", "ew"),
    ],
)
def test_phrases_are_found(begin: str, end: str) -> None:
    """Each phrase is found, also across lines. Two halves make it, so that this file does not have it."""
    assert len(list(_found(f"{begin}{end} plan"))) == 1


@pytest.mark.parametrize("phrase", ["There is no string", "besides", "Elsewhere it", "where the"])
def test_other_phrases_are_left_alone(phrase: str) -> None:
    assert list(_found(f"{phrase} plan")) == []

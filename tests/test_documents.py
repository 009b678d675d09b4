"""Every example in the documentation runs and prints what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples(document: Path) -> None:
    result = doctest.testfile(str(document), module_relative=False, optionflags=OPTIONS)
    assert result.failed == 0


def test_quick_start_is_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Quick start$(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    assert section is not None
    blocks = re.findall(r"```sh\n(.*?)```", section.group(1), re.DOTALL)
    assert [len(block.strip().splitlines()) for block in blocks] == [1, 1]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target

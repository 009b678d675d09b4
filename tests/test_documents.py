"""Every example in the documentation runs and prints what it says, and every link leads somewhere."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

import tofu
from tofu.partitioner.methods import method

ROOT = Path(__file__).parents[1]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
PYTHON = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _name(document: Path) -> str:
    return str(document.relative_to(ROOT))


def _scripts(document: Path) -> list[str]:
    """Return the blocks of Python that are not sessions."""
    blocks = PYTHON.findall(document.read_text(encoding="utf-8"))
    return [block for block in blocks if not block.startswith(">>>")]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    """Forget the methods that examples register, whose functions end with their document."""
    before = dict(method._searching)
    yield
    method._searching.clear()
    method._searching.update(before)


NEEDS = {"docs/onnx.md": "onnx", "docs/pytorch.md": "torch"}
"""By page, the extra that its examples need."""


def _marked(document: Path) -> object:
    """Return the page as a parameter, marked if its examples need PyTorch."""
    needs_torch = NEEDS.get(_name(document)) == "torch"
    return pytest.param(document, marks=pytest.mark.torch) if needs_torch else document


@pytest.mark.parametrize("document", [_marked(each) for each in DOCUMENTS], ids=_name)
def test_examples(document: Path) -> None:
    if needed := NEEDS.get(_name(document)):
        pytest.importorskip(needed, reason=f"the extra `{needed}` is not installed")
    with mock.patch.dict(os.environ):  # an example sets variables
        result = doctest.testfile(str(document), module_relative=False, optionflags=OPTIONS)
    assert result.failed == 0


@pytest.mark.parametrize("document", [page for page in DOCUMENTS if _scripts(page)], ids=_name)
def test_scripts(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # scripts write files
    names: dict[str, object] = {}
    for block in _scripts(document):
        exec(compile(block, str(document), "exec"), names)


def _public() -> set[str]:
    """Return the names that the reference lists, with their modules."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = {f"tofu.{name}" for name in tofu.__all__} | {"tofu"}
    for name, members in re.findall(
        r"^::: (\S+)$(?:\n    options:\n      members: \[(.*)\]$)?", text, re.MULTILINE
    ):
        found |= {name, *(f"{name}.{member}" for member in members.split(", ") if member)}
    return found


def _imported(source: str) -> set[str]:
    """Return the names of Tofu that a program imports, with their modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "tofu"}


PROGRAMS = [*sorted((ROOT / "examples").rglob("*.py")), ROOT / "docs" / "pictures" / "draw.py"]


@pytest.mark.parametrize("document", [*DOCUMENTS, *PROGRAMS], ids=_name)
def test_only_public_names_are_imported(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    sessions = (example.source for example in doctest.DocTestParser().get_examples(text))
    sources = [text] if document.suffix == ".py" else [*sessions, *_scripts(document)]
    assert set[str]().union(*map(_imported, sources)) - _public() == set()


def test_quick_start_is_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Quick start$(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    assert section is not None
    blocks = re.findall(r"```sh\n(.*?)```", section.group(1), re.DOTALL)
    assert [len(block.strip().splitlines()) for block in blocks] == [1, 1]


def _prose(document: Path) -> str:
    return re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(document: Path) -> set[str]:
    """The anchors that headings get, on the site as on GitHub."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", _prose(document), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower())
        found.add(words.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=_name)
def test_links_lead_somewhere(document: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", _prose(document)):
        if ":" in target:
            continue
        page = document.parent / target if target else document
        assert page.exists(), target
        assert not anchor or anchor in _anchors(page), f"{target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_files_that_are_named_exist(document: Path) -> None:
    """Paths in backquotes that begin with a folder of the project; a star stands for any name."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    for path in re.findall(r"`([a-z_]+/[a-z_/*]*\.(?:py|lark|md))`", document.read_text(encoding="utf-8")):
        if path.split("/")[0] in folders:
            assert list(ROOT.glob(path)), path


def test_the_readme_links_to_every_page() -> None:
    linked = re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {_name(page) for page in PAGES} - set(linked) == {"docs/index.md"}


def test_the_site_has_every_page() -> None:
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES)


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = {name.split(".")[0] for name in re.findall(r"^::: tofu\.(\S+)$", text, re.MULTILINE)}
    errors = {
        name for name in tofu.__all__ if isinstance(getattr(tofu, name), type) and name.endswith("Error")
    }
    assert set(tofu.__all__) - errors - named == set()


def test_pictures_are_those_of_present_plans() -> None:
    place = ROOT / "docs" / "pictures" / "draw.py"
    specification = importlib.util.spec_from_file_location("draw", place)
    assert specification is not None
    assert specification.loader is not None
    draw = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(draw)
    for name, picture in draw.PICTURES.items():
        stored = (place.parent / f"{name}.svg").read_text(encoding="utf-8")
        assert stored == picture(), "draw it again with: python docs/pictures/draw.py"

"""The documents against the product: what they name exists, from metrics and reason codes to links and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest
import yaml

from handoffwatch.catalogue import CATALOGUE
from handoffwatch.exporter.served import SECTIONS
from handoffwatch.mixin import Values, render
from handoffwatch.mixin.overview import overview
from handoffwatch.reasons import REASONS
from handoffwatch.runtime.settings import check_settings
from support.promql import metric_of, problems, recorded_labels, usage
from support.requirements import ROOT

CASES = {"contract-tests.md"}
"""Pages whose YAML is cases and contexts, which a test of their own runs."""

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = {"cd", "handoffwatch", "make", "pip", "pytest", "python"}
"""How an indented block begins that is no query."""

by_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))

_FENCED = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_SERIES = re.compile(r"(?:\w+:)?handoffwatch_\w+(?::\w+)?(?=$|[^\w(/.])")
_LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")


def prose(document: Path) -> str:
    """Return a document without its fenced blocks."""
    return _FENCED.sub("", document.read_text(encoding="utf-8"))


def fenced(document: Path, kind: str) -> list[str]:
    """Return the fenced blocks of one kind; what stands behind the language is part of the kind."""
    return [found["text"] for found in _FENCED.finditer(document.read_text(encoding="utf-8")) if found["kind"] == kind]


def queries(document: Path) -> list[str]:
    """Return the indented blocks that are no commands."""
    blocks = re.findall(r"(?:^    .+\n)+", prose(document), re.MULTILINE)
    return [block for block in blocks if block.split(maxsplit=1)[0] not in COMMANDS]


def recorded(files: Mapping[PurePosixPath, str]) -> dict[str, frozenset[str]]:
    """Return the labels of each series that the rendered rules record."""
    texts = [text for path, text in files.items() if path.suffix == ".yaml"]
    rules = [rule for text in texts for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    return {rule["record"]: recorded_labels(rule["expr"]) for rule in rules if "record" in rule}


RECORDED = recorded(render(Values()))
EXPOSED = {metric.full_name for metric in CATALOGUE}
PANELS = {panel["title"] for panel in overview(Values())["panels"]}


def slugs(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def reactions(node: object) -> Iterator[str]:
    """Yield every code that the settings of a route react to."""
    for route in node["handoffs"]["routes"].values() if isinstance(node, dict) and "handoffs" in node else ():
        yield from route.get("reactions", {})


@by_document
def test_document_names_only_known_metrics_when_read(document: Path) -> None:
    """Every series that a document names is in the catalogue or recorded by a rule."""
    names = set(_SERIES.findall(document.read_text(encoding="utf-8"))) - EXPOSED - RECORDED.keys()
    assert [name for name in sorted(names) if metric_of(name, CATALOGUE) is None] == []


@by_document
def test_document_queries_use_only_known_series_when_read(document: Path) -> None:
    """Every query of a document uses series, labels and label values that exist."""
    used = [usage(str(document.relative_to(ROOT)), block) for block in queries(document)]
    assert problems(used, CATALOGUE, RECORDED) == []


def test_documents_hold_queries_when_read() -> None:
    """The pattern that finds the queries finds them: each page of a code has one, and the guides have several."""
    assert all(queries(ROOT / "docs/reasons" / f"{code}.md") for code in REASONS)
    assert len(queries(ROOT / "docs/shadow-mode.md")) >= 10


@by_document
def test_document_names_only_known_codes_when_read(document: Path) -> None:
    """Every reason code in a query, in settings and in code that sets reactions has its row and its page."""
    text = document.read_text(encoding="utf-8")
    named = {code for found in re.findall(r'handoff_findings_total\{[^}]*reason=~?"([^"]+)"', text)
             for code in found.split("|")}  # fmt: skip
    named |= {code for found in re.findall(r"reactions=\{([^}]*)\}", text) for code in re.findall(r'"(\w+)":', found)}
    named |= {code for block in fenced(document, "yaml") for code in reactions(yaml.safe_load(block))}
    named |= set(re.findall(r"(?<=reasons/)(\w+)(?=\.md)", text)) - {"README"}
    assert sorted(named - REASONS.keys()) == []


@by_document
def test_document_links_lead_somewhere_when_read(document: Path) -> None:
    """Every relative link names a file of the repository, and a heading of it where it says so."""
    broken = []
    for link in _LINK.findall(prose(document)):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in slugs(target)):
            broken.append(link)
    assert broken == []


@by_document
def test_document_settings_load_when_read(document: Path, tmp_path: Path) -> None:
    """Every YAML block loads as a settings file; one that is something else says so after the language."""
    for block in fenced(document, "yaml") if document.name not in CASES else ():
        file = tmp_path / "handoffwatch.yaml"
        file.write_text(block, encoding="utf-8")
        assert check_settings(file, sections=SECTIONS, environ={}) == [], block


@by_document
def test_document_names_only_panels_that_exist_when_read(document: Path) -> None:
    """What a document calls a panel stands on the Overview."""
    sentences = re.findall(r"panels? (\*[^.]*?\*) (?:of|on) the\s+Overview", re.sub(r"\s+", " ", prose(document)))
    assert {title for sentence in sentences for title in re.findall(r"\*([^*]+)\*", sentence)} <= PANELS

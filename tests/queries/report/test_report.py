"""A report is one page that asks for nothing outside it, says what the findings say, and escapes what it is given."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import planted
from circuitdb.errors import UsageError
from circuitdb.queries import Database, studyplots
from circuitdb.queries.report import write
from circuitdb.queries.report.drawings import svg
from circuitdb.queries.report.markdown import escaped
from circuitdb.queries.report.tables import text
from circuitdb.queries.studies.findings import Figure, Findings
from circuitdb.store import Store
from planted import SHAPE, arithmetic, sports
from stores import circuit, model

DATE = datetime(2026, 1, 2, tzinfo=UTC)
NASTY = 'a <script>alert("1")</script> & b\nc | d $x$ `e` *f* </svg>'
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, and whether each is closed in turn."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return Database(arithmetic(tmp_path_factory.mktemp("a") / "c.duckdb", digits=3)).study("arithmetic")


@pytest.fixture(scope="module")
def folder(found: Findings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(found, tmp_path_factory.mktemp("report") / "deep" / "report", DATE).parent


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "index.html").read_text(encoding="utf-8"))


def test_all_of_it_is_there(folder: Path, found: Findings) -> None:
    n = sum(len(finding.figures) for finding in found.findings)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["figures", "index.html", "report.md"]
    assert len(list((folder / "figures").iterdir())) == n
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_nothing_outside_the_page_is_asked_for(folder: Path, page: Page) -> None:
    content = (folder / "index.html").read_text(encoding="utf-8")
    assert not {tag for tag, _ in page.elements} & {"script", "link", "iframe", "object", "embed", "form", "base"}
    assert "@import" not in content
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "action", "srcset", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/png;base64,"))
    assert all(target.startswith(("#", "var(")) for target in re.findall(r"url\(([^)]*)\)", content))


def test_it_is_well_formed_and_its_ids_are_its_own(page: Page) -> None:
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        for name in ("href", "xlink:href", "aria-labelledby"):
            target = (attributes.get(name) or "").removeprefix("#") if tag != "image" else ""
            assert not target or target.startswith("data:") or target in ids, (tag, name, target)


def test_it_can_be_read_aloud_and_on_a_telephone(page: Page, found: Findings) -> None:
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == 1
    assert tags.count("caption") == tags.count("table")
    images = [attributes for _, attributes in page.elements if attributes.get("role") == "img"]
    assert [image["aria-label"] for image in images] == [f.alt for one in found.findings for f in one.figures]
    assert tags.count("figcaption") == tags.count("figure") == len(images)
    assert ("html", {"lang": "en"}) in page.elements
    assert any("width=device-width" in (attributes.get("content") or "") for _, attributes in page.elements)
    assert all(
        attributes.get("tabindex") == "0" for _, attributes in page.elements if attributes.get("class") == "scroll"
    )


def test_it_says_what_the_findings_say(page: Page, folder: Path, found: Findings) -> None:
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    for i, finding in enumerate(found.findings, start=1):
        assert " ".join(finding.answer.split()).replace("-", "\u2212") in page.text.replace("-", "\u2212")
        assert f"## {i}. {escaped(finding.question)}\n\n{escaped(finding.answer)}\n" in markdown
        for command in finding.commands:
            assert command in page.text
            assert f"$ {command}\n" in markdown
    # One cell, to its last digit: the gap of 2+1 and 1+2, and its standard error of 0.1304.
    assert "| 2+1 | 1+2 | 0.900 | 0.500 | 0.400 | 0.130 |" in markdown.replace("\\", "")
    assert "made on 2026-01-02 with circuitdb" in page.text
    assert "9 circuits of tiny in c.duckdb" in page.text
    assert "digest of tiny" in page.text
    assert "digest of tiny" in markdown
    assert "eap-ig" in markdown


def test_the_figures_of_the_text_are_there_and_are_xml(folder: Path) -> None:
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\((figures/[^)]*)\)", markdown)
    assert sorted(named) == sorted(f"figures/{path.name}" for path in (folder / "figures").iterdir())
    for name in named:
        assert ET.parse(folder / name).getroot().tag.endswith("svg")


def test_twice_the_same_bytes(folder: Path, found: Findings, tmp_path: Path) -> None:
    write(found, tmp_path, DATE)
    for path in folder.rglob("*.*"):
        assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_names_are_escaped(tmp_path: Path) -> None:
    store, rng = Store(tmp_path / "c.duckdb"), np.random.default_rng(0)
    of = model(NASTY, SHAPE)
    for a in (1, 2):
        for b in (1, 2):
            record = circuit(f"{NASTY} {a}{b}", {"digits_a": a, "digits_b": b}, of=of)
            planted.write(store, record, rng.standard_normal(SHAPE.n_edges), rng, accuracy=0.5)
    found = Database(store.path).study("arithmetic")
    found = replace(found, title=NASTY)
    folder = write(found, tmp_path / "report", DATE).parent
    page = Page((folder / "index.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert "script" not in {tag for tag, _ in page.elements}
    assert " ".join(NASTY.split()) in page.text
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert "<script" not in markdown.replace("\\<", "")
    assert all(line.count(" | ") == line.replace("\\|", "").count(" | ") for line in markdown.splitlines())
    for path in (folder / "figures").iterdir():
        ET.parse(path)


def test_a_dollar_sign_begins_no_formula() -> None:
    one = np.array([0.5])
    name = r"$\nothing$"  # as a formula an error
    figure = Figure("x", name, "y", lambda: studyplots.intervals([name], one, one, one, name))
    assert "<svg" in svg(figure)


def test_a_report_takes_the_place_of_another(tmp_path: Path, found: Findings) -> None:
    few = replace(found, findings=found.findings[1:2], provenance=())
    (tmp_path / "index.html").write_text("old")
    assert write(few, tmp_path, DATE) == tmp_path / "index.html"
    assert (tmp_path / "index.html").read_text() != "old"


def test_a_folder_that_can_not_be_written_to(tmp_path: Path, found: Findings) -> None:
    (tmp_path / "report").write_text("a file")
    few = replace(found, findings=found.findings[1:2])
    with pytest.raises(UsageError, match=r"can't be written to .*report: .*; name another folder\."):
        write(few, tmp_path / "report", DATE)


def test_an_empty_study(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").create()
    index = write(Database(tmp_path / "c.duckdb").study("sports"), tmp_path / "r", DATE)
    page = Page(index.read_text())
    assert page.open == []
    assert "There is no circuit to study yet" in page.text
    assert "No circuit in c.duckdb" in page.text


def test_sports_are_drawn_too(tmp_path: Path) -> None:
    index = write(Database(sports(tmp_path / "c.duckdb", parts=3)).study("sports"), tmp_path / "r", DATE)
    assert Page(index.read_text()).open == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "\u2013"), (True, "yes"), (False, "no"), (1234567, "1,234,567"), (0.12345, "0.123"),
        (-0.5, "\u22120.500"), (0.0, "0.000"), (1e-5, "1.0e\u221205"), (-2e-4, "\u22122.0e\u221204"), ("x", "x"),
    ],
)  # fmt: skip
def test_cells(value: object, shown: str) -> None:
    assert text(value) == shown

"""The site builds strictly, loads nothing from a network, and lies there as Markdown, too."""

import re
import subprocess
from pathlib import Path

import pytest

from deploy import parts
from deploy.docsite import build as building
from deploy.docsite.staging import SitePages, navigation


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    building.build(parts.by_name("docs").find(), folder / "pages", folder / "site")
    return folder / "site"


@pytest.mark.part("docs")
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) >= len(SitePages().sources)
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(https?:[^\s\">]+)")
    found = {address for page in pages for address in loaded.findall(page.read_text("utf-8"))}
    assert found == set()


@pytest.mark.part("docs")
def test_search_and_markdown_are_there(site: Path) -> None:
    assert "kv_headroom_floor" in (site / "search" / "search_index.js").read_text("utf-8")
    listed = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text("utf-8"))
    assert listed == [place for _, pages in navigation() for place in pages]
    assert all((site / place).read_text("utf-8").startswith("# ") for place in listed)
    index = (site / "search" / "search_index.js").read_text("utf-8")
    assert '"boost":0.1' in index.replace(" ", "")
    shim = (site / "how-to" / "budgets.html").read_text("utf-8")
    assert "../worker_shim.js" in shim
    assert (site / "worker_shim.js").exists()


@pytest.mark.part("docs")
@pytest.mark.parametrize(
    ("more", "fault"), [("# More\n", "more.md"), (None, None)], ids=["omitted", "control"]
)
def test_a_page_in_no_navigation_fails_the_build(tmp_path: Path, monkeypatch, more, fault) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n")
    if more is not None:
        (tmp_path / "docs" / "more.md").write_text(more)
    listed = "nav:\n  - index.md\n"
    whole = building.config_text
    monkeypatch.setattr(building, "SitePages", lambda: SitePages(tmp_path, {}))
    monkeypatch.setattr(building, "navigation", lambda: [("Start", ["index.md"])])
    monkeypatch.setattr(
        building, "config_text", lambda *folders: whole(*folders).partition("nav:\n")[0] + listed
    )
    python = parts.by_name("docs").find()
    if fault is None:
        building.build(python, tmp_path / "pages", tmp_path / "site")
        return
    with pytest.raises(subprocess.CalledProcessError) as caught:
        building.build(python, tmp_path / "pages", tmp_path / "site")
    assert fault in caught.value.output


def test_without_its_environment_it_says_what_to_install(monkeypatch, capsys) -> None:
    monkeypatch.setattr(parts, "find_docs", lambda: None)
    assert building.main() == 1
    assert "make parts" in capsys.readouterr().err


def test_the_index_for_programs_has_titles_and_parts() -> None:
    lines = list(building.index_lines(SitePages()))
    assert lines[0] == "# Breakeven"
    assert "- [Settings](reference/settings.md)" in lines
    assert "## Tutorials" in lines

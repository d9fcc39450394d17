"""Pages are put together with links that lead somewhere, from wherever a document lies."""

from pathlib import Path

import pytest

from deploy.docsite.staging import UNLISTED, SiteError, SitePages, anchors, navigation, title_of

ELSEWHERE = {"explanation/ledger.md": "ledger/README.md"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "docs/index.md": "# Start\n",
        "docs/how-to/a.md": "# A page\n\n## One `b` here\n",
        "ledger/README.md": "# The ledger\n\n## Exports\n",
        "ledger/money.py": "",
        "docs/pictures/p.svg": "<svg/>",
        "deploy/prometheus/rules.yml": "groups: []\n",
        "docs/decisions/0007-own-client.md": "# 7. Own client\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def staged(root: Path, text: str, page: str = "docs/how-to/a.md") -> str:
    (root / page).write_text(f"# Title\n\n{text}\n")
    place = {"ledger/README.md": "explanation/ledger.md"}.get(page, page.removeprefix("docs/"))
    return SitePages(root, ELSEWHERE).page(place).removeprefix("# Title\n\n").removesuffix("\n")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[x](../index.md)", "[x](../index.md)"),
        ("[x](../../ledger/README.md#exports)", "[x](../explanation/ledger.md#exports)"),
        ("[x](https://example.com/a)", "[x](https://example.com/a)"),
        ("[money](../../ledger/money.py)", "money (`ledger/money.py`)"),
        (
            "[`deploy/prometheus/rules.yml`](../../deploy/prometheus/rules.yml)",
            "[`deploy/prometheus/rules.yml`](../files/prometheus/rules.yml)",
        ),
        ("[`ledger/money.py`](../../ledger/money.py)", "`ledger/money.py`"),
        ("![p](../pictures/p.svg)", "![p](../pictures/p.svg)"),
        ("in code `[x](nowhere.md)` it stays", "in code `[x](nowhere.md)` it stays"),
        ("[a `b` c](#title)", "[a `b` c](#title)"),
        ("<!-- block: run -->\n```sh\n[x](nowhere.md)\n```", "```sh\n[x](nowhere.md)\n```"),
        ("```mermaid\ngraph\n```", "```text\ngraph\n```"),
        (
            "see decision 7, not `decision 7`",
            "see [decision 7](../decisions/0007-own-client.md), not `decision 7`",
        ),
        ("see decision 8", "see decision 8"),
    ],
)
def test_links_lead_to_places_of_the_site(root: Path, written: str, shown: str) -> None:
    assert staged(root, written) == shown


def test_a_document_elsewhere_is_read_from_where_it_lies(root: Path) -> None:
    shown = staged(root, "[a](../docs/how-to/a.md#one-b-here)", "ledger/README.md")
    assert shown == "[a](../how-to/a.md#one-b-here)"


@pytest.mark.parametrize("written", ["[x](nowhere.md)", "[x](#nowhere)", "[x](../index.md#no)"])
def test_a_link_that_leads_nowhere_is_an_error(root: Path, written: str) -> None:
    with pytest.raises(SiteError):
        staged(root, written)


def test_pages_and_pictures_are_written(root: Path, tmp_path: Path) -> None:
    (root / "docs/index.md").write_text("# Start\n\n![p](pictures/p.svg)\n")
    SitePages(root, ELSEWHERE).write(tmp_path / "out")
    files = {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")
    }
    assert files == {
        "index.md", "how-to/a.md", "explanation/ledger.md", "pictures/p.svg",
        "decisions/0007-own-client.md",
    }  # fmt: skip


def test_a_linked_file_of_deploy_comes_along(root: Path, tmp_path: Path) -> None:
    """A user of the wheel had no alert rules: the pages named a path of the repository."""
    text = "# Start\n\n[rules](../deploy/prometheus/rules.yml)\n"
    (root / "docs/index.md").write_text(text)
    pages = SitePages(root, ELSEWHERE)
    assert "[rules](files/prometheus/rules.yml)" in pages.page("index.md")
    pages.write(tmp_path / "site")
    assert (tmp_path / "site/files/prometheus/rules.yml").read_text() == "groups: []\n"


def test_what_an_operator_needs_of_deploy_is_on_the_site(tmp_path: Path) -> None:
    pages = SitePages()
    for place in pages.sources:
        pages.page(place)
    assert {
        "files/prometheus/rules.yml", "files/prometheus/prometheus.yml",
        "files/grafana/dashboards/breakeven.json",
        "files/postgres-gateway.sql", "files/postgres-reader.sql",
    } <= pages.files.keys()  # fmt: skip


def test_anchors_are_mkdocs_own() -> None:
    text = "# A: b/c `d_e` (f)\n## Same\n## Same\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"a-bc-d_e-f", "same", "same_1"}
    assert title_of(text) == "A: b/c `d_e` (f)"


def test_the_whole_site_is_put_together_and_every_page_is_in_the_navigation() -> None:
    staging = SitePages()
    assert all(staging.page(place).strip() for place in staging.sources)
    listed = [place for _, pages in navigation() for place in pages]
    assert len(listed) == len(set(listed))
    assert set(listed) == {place for place in staging.sources if not UNLISTED.fullmatch(place)}

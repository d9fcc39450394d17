"""The generated pages in the repository are what the code makes of itself now."""

import pytest

from deploy.docsite import pages


@pytest.mark.parametrize("name", sorted(pages.PAGES))
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (pages.DOCS / name).read_text("utf-8") == pages.PAGES[name](), "run `make settings`"


def test_all_of_them_are_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(pages, "PAGES", {"a.md": lambda: "x\n", "b.md": lambda: "y\n"})
    pages.main()
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {"a.md": "x\n", "b.md": "y\n"}


def test_make_settings_writes_them(pytestconfig) -> None:
    makefile = (pytestconfig.rootpath / "Makefile").read_text("utf-8")
    settings = makefile.partition("\nsettings:")[2].partition("\n\n")[0]
    assert "-m deploy.docsite.pages" in settings

"""A page's blocks are run in order, counted up to the first answer, and judged by its bar."""

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.docsite import first_hour
from deploy.docsite.blocks import FIRST_HOUR, blocks
from deploy.docsite.first_hour import BARS, PageBar, PageResult, line_of, run_page, taken_ports
from deploy.docsite.staging import SitePages

ENVIRON = {"PATH": os.environ["PATH"]}
PAGE = """# A page

<!-- block: file save=a.txt -->
```csv
x,1
```

<!-- block: run -->
```sh
export WORD=$(head -1 a.txt)
echo one
```

<!-- block: gpu -->
```sh
false
```

<!-- block: served -->
```sh
echo curl $WORD >asked
```

<!-- block: served -->
```sh
{last}
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch):
    def written(last: str) -> PageResult:
        path = tmp_path / "page.md"
        path.write_text(PAGE.replace("{last}", last))

        pages = SimpleNamespace(sources={"page.md": path})
        monkeypatch.setattr(first_hour, "SitePages", lambda: pages)
        folder = tmp_path / "empty"
        folder.mkdir()
        return run_page(PageBar("page.md", 60.0, 3), folder, ENVIRON)

    return written


def test_blocks_run_in_order_and_count_up_to_the_first_answer(page, tmp_path: Path) -> None:
    result = page("cat asked")
    assert (tmp_path / "empty" / "asked").read_text() == "curl x,1\n"
    assert (result.commands, result.fault, result.holds) == (3, "", True)


def test_a_block_that_fails_is_told_with_its_place(page) -> None:
    result = page("none-such")
    assert not result.holds
    assert "page.md:25" in result.fault
    assert "none-such" in line_of(result)


@pytest.mark.parametrize(
    ("seconds", "commands", "holds"), [(60, 3, True), (61, 3, False), (1, 4, False)]
)
def test_a_page_is_judged_by_its_bar(seconds: float, commands: int, holds: bool) -> None:
    result = PageResult(PageBar("p", 60.0, 3), seconds, commands)
    assert result.holds is holds
    assert "bar 60" in line_of(result)


def test_a_port_that_something_else_has_is_named(monkeypatch, capsys) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(first_hour, "ENGINES", (taken.getsockname()[1],))
        assert taken.getsockname()[1] in taken_ports()
        assert first_hour.main() == 2
    assert "are taken" in capsys.readouterr().err


def test_every_page_with_such_blocks_has_its_bar() -> None:
    pages = {
        name
        for name, path in SitePages().sources.items()
        for block in blocks(name, path.read_text("utf-8"))
        if block.kind in FIRST_HOUR
    }
    assert pages == {bar.page for bar in BARS}


@pytest.mark.long
def test_the_first_hour_of_a_new_user() -> None:
    if taken := taken_ports():
        pytest.skip(f"ports {taken} are taken")
    assert first_hour.main() == 0

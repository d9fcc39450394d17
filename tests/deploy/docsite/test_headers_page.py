"""The page of headers has every header of ours that the code reads or writes."""

import re
from pathlib import Path

from deploy.docsite.headers_page import REQUEST, RESPONSE, SENT, text
from gateway.worker.cors import EXPOSED

OURS = re.compile(r'"((?:x-breakeven-|x-ratelimit-|x-should-|idempot|x-session-)[a-z-]+[a-z])"')
# A proxy's header, which no client sends or reads, and a word that looks like one.
INSIDE = {"x-breakeven-proxy", "idempotency"}


def test_every_header_of_the_code_is_on_the_page(pytestconfig) -> None:
    listed = {entry.name for entry in (*REQUEST, *RESPONSE, *SENT)}
    sources = sorted((pytestconfig.rootpath / "gateway").rglob("*.py"))
    found = {name for path in sources for name in OURS.findall(Path(path).read_text("utf-8"))}
    assert len(found) >= 10
    assert found - listed - INSIDE == set()


def test_what_pages_of_other_origins_may_read_is_listed() -> None:
    exposed = set(EXPOSED.decode().split(", "))
    assert exposed - {entry.name for entry in RESPONSE} == set()


def test_pages_of_other_origins_may_read_all_that_is_said() -> None:
    """A page saw neither what was found in its request nor that its answer was an earlier one."""
    exposed = set(EXPOSED.decode().split(", "))
    assert {entry.name for entry in RESPONSE} - exposed == set()


def test_each_has_a_line() -> None:
    shown = text()
    for entry in (*REQUEST, *RESPONSE, *SENT):
        assert f"| `{entry.name}` | `{entry.example}` |" in shown
        assert entry.meaning.endswith((".", ").", ","))

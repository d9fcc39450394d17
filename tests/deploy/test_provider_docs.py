"""The table of providers is the one that its generator writes, and has every name."""

from pathlib import Path

import pytest

from backends.provider_refusals import REFUSED
from backends.provider_table import LISTED
from backends.providers import SHORT_NAMES
from deploy import provider_docs


def test_the_committed_table_is_the_generated_one() -> None:
    assert provider_docs.WRITTEN.read_text(encoding="utf-8") == provider_docs.text(), (
        "run `make settings`"
    )


def test_every_name_has_its_line() -> None:
    written = provider_docs.text()
    for name in {*LISTED, *SHORT_NAMES} - {*SHORT_NAMES.values()}:
        assert written.count(f"\n| `{name}` |") == 1, name
    for name, reason in REFUSED.items():
        assert f"* `{name}` {reason}." in written


def test_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_docs, "WRITTEN", tmp_path / "providers.md")
    provider_docs.main()
    assert (tmp_path / "providers.md").read_text(encoding="utf-8") == provider_docs.text()

"""The page of price terms has every kind, and a price file of its terms is read."""

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from deploy.docsite.prices_page import term_of, text
from ledger.journals.token_kinds import TOKEN_KINDS
from ledger.prices.files import load_price_file


def test_every_kind_is_on_the_page() -> None:
    shown = text()
    for kind in TOKEN_KINDS:
        assert f"| `{kind.field}` | {kind.unit.singular} |" in shown
        assert f"| `{term_of(kind)}` | `{kind.column}` | {kind.meter} |" in shown


@pytest.mark.parametrize("kind", TOKEN_KINDS, ids=lambda kind: kind.field)
def test_a_price_file_reads_the_term_that_the_page_names(kind, tmp_path: Path) -> None:
    section, _, name = term_of(kind).partition(".")
    rates = {"input": 1, "output": 2}
    price = {section: {**rates, name: 3}} if name else {"usd_per_million": rates, section: 3}
    path = tmp_path / "prices.yaml"
    path.write_text(yaml.safe_dump({"source": "a contract", "prices": {"p/m": price}}))
    (draft,) = load_price_file(path, rank=1).drafts
    assert Decimal(3) == _stated(draft, kind)


def _stated(draft, kind) -> Decimal:
    if hasattr(draft.terms.rates, kind.price):
        return Decimal(getattr(draft.terms.rates, kind.price)) / 10**6
    return Decimal(getattr(draft.terms, kind.price)) / 10**12

"""A row's day, key, team and model are what its cell is called by."""

from decimal import Decimal

import pytest

from gateway.control.litellm.source_database import SourceError
from gateway.control.litellm.spend_import import SourceNames, _cell, _sums

ROW = {
    "request_id": "r", "api_key": "d", "team_id": "t-1", "organization_id": None, "user": "ann",
    "model": "gpt-4o", "model_group": "", "custom_llm_provider": None,
    "status": "failure", "prompt_tokens": None, "completion_tokens": 4, "spend": "1e-07",
}  # fmt: skip
NAMES = SourceNames({"t-1": "search"}, {}, lambda digest: f"key of {digest}")


def test_a_cell_has_our_names_and_the_group_before_the_model() -> None:
    assert _cell(ROW, NAMES, {}) == ("", "search", "key of d", "ann", "gpt-4o", "")
    other = {**ROW, "model_group": "chat", "team_id": "gone", "api_key": "", "user": "x" * 999}
    cell = _cell(other, NAMES, {})
    assert (cell.team, cell.key, cell.model, len(cell.user)) == ("gone", "", "chat", 256)


def test_sums_are_exact() -> None:
    assert _sums(ROW) == (1, 1, 0, 4, int(Decimal("1e-07") * 10**12))


@pytest.mark.parametrize("spend", ["NaN", "Infinity"])
def test_what_is_no_amount_is_named_with_its_row(spend) -> None:
    with pytest.raises(SourceError, match=rf"^spend log r-9: `spend`: `{spend}` is not an amount"):
        _sums({**ROW, "request_id": "r-9", "spend": spend})

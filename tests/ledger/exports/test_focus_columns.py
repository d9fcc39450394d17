"""Every row has all columns, within one billing month."""

from datetime import UTC, datetime

import pytest

from ledger.exports.focus_columns import COLUMNS, account, focus_row, sub_account
from ledger.exports.table import ColumnKind

COSTS = {"EffectiveCost": 5, "ListUnitPrice": 1, "ContractedUnitPrice": 1}
HOUR_US = 3_600_000_000


def us(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("start", "month"),
    [
        ((2026, 11, 30, 23), ((2026, 11, 1), (2026, 12, 1))),
        ((2026, 12, 31, 23), ((2026, 12, 1), (2027, 1, 1))),
        ((2027, 1, 1), ((2027, 1, 1), (2027, 2, 1))),
    ],
)
def test_the_billing_period_is_the_month(start: tuple, month: tuple) -> None:
    names = [column.name for column in COLUMNS]
    row = dict(zip(names, focus_row(COSTS, (us(*start), us(*start) + HOUR_US)), strict=True))
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (us(*month[0]), us(*month[1]))
    assert (row["BillingCurrency"], row["PricingCurrencyEffectiveCost"]) == ("USD", 5)
    assert row["SubAccountId"] is None


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(AssertionError):
        focus_row({**COSTS, "Colour": "red"}, (0, HOUR_US))


def test_names_and_kinds() -> None:
    names = [column.name for column in COLUMNS]
    assert len(set(names)) == len(names)
    assert names == sorted(names, key=lambda name: (name.startswith("x_"), name))
    for column in COLUMNS:
        assert (column.kind is ColumnKind.USD) == (column.name.endswith("Cost"))
    assert account("gpu:chat", "contract", "GPU contract").keys() < set(names)
    assert sub_account("search") == {
        "SubAccountId": "search", "SubAccountName": "search", "SubAccountType": "Team",
    }  # fmt: skip

"""Every row has all columns, within one billing month."""

from datetime import UTC, datetime

import pytest

from ledger.exports.focus_columns import (
    FOCUS_1_2,
    FOCUS_1_4,
    FocusLayout,
    account,
    focus_row,
    sku_price,
    sub_account,
)
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
    names = [column.name for column in FOCUS_1_4.columns]
    row = dict(zip(names, focus_row(COSTS, (us(*start), us(*start) + HOUR_US)), strict=True))
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (us(*month[0]), us(*month[1]))
    assert (row["BillingCurrency"], row["PricingCurrencyEffectiveCost"]) == ("USD", 5)
    assert row["SubAccountId"] is None


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(AssertionError):
        focus_row({**COSTS, "Colour": "red"}, (0, HOUR_US))


@pytest.mark.parametrize("layout", [FOCUS_1_2, FOCUS_1_4], ids=lambda each: each.version)
def test_names_and_kinds(layout: FocusLayout) -> None:
    names = [column.name for column in layout.columns]
    assert len(set(names)) == len(names)
    assert names == sorted(names, key=lambda name: (name.startswith("x_"), name))
    for column in layout.columns:
        assert (column.kind is ColumnKind.USD) == (column.name.endswith("Cost"))
    if layout is FOCUS_1_4:
        assert account("gpu:chat", "contract", "GPU contract").keys() < set(names)
    assert sub_account("search") == {
        "SubAccountId": "search", "SubAccountName": "search", "SubAccountType": "Team",
    }  # fmt: skip


# Of FOCUS 1.4's Cost and Usage; the rest is conditional or recommended.
MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd",
    "ChargePeriodStart", "ContractedCost", "EffectiveCost", "HostProviderName",
    "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ServiceCategory",
    "ServiceName", "ServiceProviderName",
}  # fmt: skip


def test_1_4_has_what_it_must_have_and_nothing_that_it_removed() -> None:
    names = {column.name for column in FOCUS_1_4.columns}
    assert names >= MANDATORY
    assert not {"ProviderName", "PublisherName"} & names
    assert {"ProviderName", "PublisherName"} <= {column.name for column in FOCUS_1_2.columns}


def test_each_version_shows_a_row_in_its_own_words() -> None:
    values = {**COSTS, **account("provider:a", "a", "API account"), **sku_price("a/in", "v7@1")}
    for layout, provider, price in (
        (FOCUS_1_4, "ServiceProviderName", "a/in"),
        (FOCUS_1_2, "ProviderName", "v7@1"),
    ):
        cells = focus_row(values, (0, HOUR_US), layout)
        row = dict(zip([column.name for column in layout.columns], cells, strict=True))
        assert (row[provider], row["SkuPriceId"]) == ("a", price)

"""The columns of a FOCUS file in each version, and the values that all its rows share.

Our own columns begin with `x_`. Prices are in the billing currency, so the columns of the pricing
currency repeat them. `InvoiceId` is empty, because the ledger has no invoice of these charges. Rows
are built with the column names of 1.4; other versions map their columns with `sources`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.exports.table import ColumnKind, ExportColumn, Row, Value
from ledger.reporting_zone import UTC_DAYS, ReportingZone

_TEXT, _USD, _PRICE, _QUANTITY, _SECOND = (
    ColumnKind.TEXT, ColumnKind.USD, ColumnKind.PRICE, ColumnKind.QUANTITY, ColumnKind.SECOND,
)  # fmt: skip
_KINDS: dict[str, ColumnKind] = {
    "BilledCost": _USD, "BillingAccountId": _TEXT, "BillingAccountName": _TEXT,
    "BillingAccountType": _TEXT, "BillingCurrency": _TEXT, "BillingPeriodEnd": _SECOND,
    "BillingPeriodStart": _SECOND, "ChargeCategory": _TEXT, "ChargeClass": _TEXT,
    "ChargeDescription": _TEXT, "ChargeFrequency": _TEXT, "ChargePeriodEnd": _SECOND,
    "ChargePeriodStart": _SECOND, "CommitmentDiscountCategory": _TEXT,
    "CommitmentDiscountId": _TEXT, "CommitmentDiscountName": _TEXT,
    "CommitmentDiscountQuantity": _QUANTITY, "CommitmentDiscountStatus": _TEXT,
    "CommitmentDiscountType": _TEXT, "CommitmentDiscountUnit": _TEXT,
    "ConsumedQuantity": _QUANTITY, "ConsumedUnit": _TEXT, "ContractedCost": _USD,
    "ContractedUnitPrice": _PRICE, "EffectiveCost": _USD, "HostProviderName": _TEXT,
    "InvoiceDetailId": _TEXT, "InvoiceId": _TEXT, "InvoiceIssuerName": _TEXT, "ListCost": _USD,
    "ListUnitPrice": _PRICE, "PricingCategory": _TEXT,
    "PricingCurrency": _TEXT, "PricingCurrencyContractedUnitPrice": _PRICE,
    "PricingCurrencyEffectiveCost": _USD, "PricingCurrencyListUnitPrice": _PRICE,
    "PricingQuantity": _QUANTITY, "PricingUnit": _TEXT, "ProviderName": _TEXT,
    "PublisherName": _TEXT, "ResourceId": _TEXT, "ResourceName": _TEXT, "ResourceType": _TEXT,
    "ServiceCategory": _TEXT, "ServiceName": _TEXT, "ServiceProviderName": _TEXT,
    "ServiceSubcategory": _TEXT, "SkuId": _TEXT,
    "SkuMeter": _TEXT, "SkuPriceDetails": _TEXT, "SkuPriceId": _TEXT,
    "SubAccountId": _TEXT, "SubAccountName": _TEXT, "SubAccountType": _TEXT,
    "x_Backend": _TEXT, "x_Bearer": _TEXT, "x_Model": _TEXT,
    "x_OrganisationId": _TEXT, "x_Pool": _TEXT, "x_PriceVersion": ColumnKind.INTEGER,
    "x_ServiceTier": _TEXT, "x_Simulated": ColumnKind.FLAG, "x_TokenKind": _TEXT,
}  # fmt: skip
_VERSION = "x_SkuPriceVersion"  # a price's id in 1.2, with its version and amount
_NEWER = frozenset({"HostProviderName", "InvoiceDetailId", "ServiceProviderName"})
_REMOVED = {
    "ProviderName": "ServiceProviderName",
    "PublisherName": "HostProviderName",
}


@dataclass(frozen=True, slots=True)
class FocusLayout:
    """The columns of one FOCUS version.

    `sources` maps a column to the column whose value it shows, if they differ.
    """

    version: str
    columns: tuple[ExportColumn, ...]
    sources: Mapping[str, str]

    def row(self, values: Mapping[str, Value]) -> Row:
        return [values.get(self.sources.get(column.name, column.name)) for column in self.columns]


def _columns(left_out: frozenset[str]) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(name, kind) for name, kind in _KINDS.items() if name not in left_out)


# A price's id in 1.4 has neither its amount nor its contract, so it survives changes of both.
FOCUS_1_4 = FocusLayout("1.4", _columns(frozenset(_REMOVED)), {})
FOCUS_1_2 = FocusLayout("1.2", _columns(_NEWER), {**_REMOVED, "SkuPriceId": _VERSION})
_SAME: dict[str, Value] = {
    "BillingCurrency": "USD", "PricingCurrency": "USD",
    "ServiceCategory": "AI and Machine Learning", "ServiceSubcategory": "Generative AI",
}  # fmt: skip


def focus_row(
    values: Mapping[str, Value],
    span: tuple[int, int],
    layout: FocusLayout = FOCUS_1_4,
    zone: ReportingZone = UTC_DAYS,
) -> Row:
    """Return all columns in order. `span` is the charge period, within one month."""
    month = zone.month(span[0])
    everything: dict[str, Any] = {
        **_SAME, **values,
        "ChargePeriodStart": span[0], "ChargePeriodEnd": span[1],
        "BillingPeriodStart": month[0], "BillingPeriodEnd": month[1],
        "PricingCurrencyContractedUnitPrice": values.get("ContractedUnitPrice"),
        "PricingCurrencyEffectiveCost": values["EffectiveCost"],
        "PricingCurrencyListUnitPrice": values.get("ListUnitPrice"),
    }  # fmt: skip
    assert everything.keys() <= {*_KINDS, _VERSION} - {*_REMOVED}
    return layout.row(everything)


def account(name: str, shown: str, kind: str) -> dict[str, Value]:
    """Return the columns of the payee: a payable account and its display name."""
    return {
        "BillingAccountId": name,
        "BillingAccountName": shown,
        "BillingAccountType": kind,
        **providers(shown),
    }


def providers(name: str) -> dict[str, Value]:
    """Return the columns of issuer, provider and host: one name, as providers state no host."""
    return dict.fromkeys(("InvoiceIssuerName", "ServiceProviderName", "HostProviderName"), name)


def sku_price(stable: str, versioned: str) -> dict[str, Value]:
    """Return a price's id as 1.4 shows it, and as 1.2 shows it."""
    return {"SkuPriceId": stable, _VERSION: versioned}


def sub_account(team: str) -> dict[str, Value]:
    """Return the columns of the payer."""
    return {"SubAccountId": team, "SubAccountName": team, "SubAccountType": "Team"}

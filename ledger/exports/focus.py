"""The ledger as FOCUS cost and usage, 1.4 or 1.2: APIs and own GPUs by hour or day.

APIs have a row for each account, team, model and token kind. GPU hours by contract have rows for
the purchase, each team's use, idle and unavailable time (`focus_gpu`). Adjustments to invoices
belong to no team; a provider's claim beyond the hold belongs to the team of the request. BilledCost
and EffectiveCost both add up to the ledger. A purchase and the usage that it covers both show list
and contracted cost, as FOCUS requires, so those two columns must not be summed over both. A team's
file has only its own rows. Accounts are the ledger's payables.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from ledger.exports.focus_columns import (
    FOCUS_1_4,
    FocusLayout,
    account,
    focus_row,
    providers,
    sku_price,
    sub_account,
)
from ledger.exports.focus_gpu import OWN, gpu_charges
from ledger.exports.simulated_parties import is_simulated
from ledger.exports.table import Reached, Row, Value
from ledger.fleet.hourshares import hour_contracts, hour_shares
from ledger.invoices.adjusted import Adjustment, posted_adjustments
from ledger.orm.tables import AttemptRow
from ledger.prices.book import Price, PriceBook
from ledger.prices.stored import every_price
from ledger.queries.claims import ClaimGroup, claim_groups
from ledger.reporting_zone import ReportingZone, reporting_zone
from ledger.reports.charges import (
    METERS,
    ChargeLine,
    PriceGroup,
    charges,
    cuts_of,
    groups,
)
from ledger.spans import DAY_US, Scope

_WHOLE_US = 1 << 61  # longer than any ledger: one bucket
_BY = (
    AttemptRow.org_id,
    AttemptRow.team_id,
    AttemptRow.provider,
    AttemptRow.target,
    AttemptRow.upstream_model,
    AttemptRow.model,
    AttemptRow.simulated,
)


@dataclass(frozen=True, slots=True)
class _Prices:
    """Every price version, and the public prices to compare negotiated ones with."""

    versions: Mapping[int, Price]
    public: PriceBook

    @classmethod
    def of(cls, stored: list[Price]) -> "_Prices":
        return cls(
            {price.version: price for price in stored},
            PriceBook([price for price in stored if price.rank == 0]),
        )

    def list_price(self, price: Price | None, at_us: int) -> Price | None:
        if price is None or price.rank == 0:
            return price
        return self.public.find(price.name, at_us)


def focus_rows(
    connection: Connection,
    scope: Scope,
    reached: Reached,
    *,
    period_us: int,
    layout: FocusLayout = FOCUS_1_4,
) -> Iterator[Row]:
    """Yield the rows of whole charge periods. Only closed hours are included.

    One day at a time is summed. Days and billing months are in the reporting time zone; times are
    UTC.
    """
    zone = reporting_zone(connection)
    for values, span in _charges(connection, scope, reached, period_us, zone):
        yield focus_row(values, span, layout, zone)


def _charges(
    connection: Connection, scope: Scope, reached: Reached, period_us: int, zone: ReportingZone
) -> Iterator[tuple[dict[str, Value], tuple[int, int]]]:
    if period_us == DAY_US:
        period_us = _WHOLE_US  # each part is already one day
    prices = _Prices.of(every_price(connection))
    cuts = cuts_of(prices.versions)
    contracts = hour_contracts(connection)
    for part in zone.days(scope):
        for group in groups(connection, part, bucket_us=period_us, by=_BY, cuts=cuts):
            price = prices.versions.get(group.version or 0)
            span = _span(group.start_us, period_us, part)
            for charge in charges(group, price, prices.list_price(price, group.first_us)):
                yield _api(group, charge, price), span
        shares = hour_shares(connection, part, bucket_us=period_us)
        for start_us, values in gpu_charges(shares, contracts, purchases=part.team is None):
            yield values, _span(start_us, period_us, part)
        for claim in claim_groups(connection, part, bucket_us=period_us):
            yield _claim(claim), _span(claim.start_us, period_us, part)
        for adjustment in posted_adjustments(connection, part, bucket_us=period_us):
            simulated = is_simulated(connection, adjustment.party, adjustment.start_us)
            yield _adjustment(adjustment, simulated), _span(adjustment.start_us, period_us, part)
        reached(part.end_us)


def _api(group: PriceGroup, charge: ChargeLine, price: Price | None) -> dict[str, Value]:
    org, team, provider, target, upstream, model, simulated = group.key
    owner = provider or target
    name = price.name if price else f"{owner}/{upstream}"
    unit = "Requests" if charge.unit is None else charge.unit.name
    meter = METERS[charge.kind]
    return {
        **account(f"provider:{owner}", owner, "API account"),
        **sub_account(team),
        "BilledCost": charge.cost_pusd,
        "EffectiveCost": charge.cost_pusd,
        "ContractedCost": charge.cost_pusd,
        "ContractedUnitPrice": charge.unit_pusd,
        "ListCost": charge.list_pusd,
        "ListUnitPrice": charge.list_unit_pusd,
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargeDescription": f"{target}: {meter}" + (" (simulated)" if simulated else ""),
        "ConsumedQuantity": charge.quantity,
        "ConsumedUnit": unit,
        "PricingCategory": "Standard",
        "PricingQuantity": charge.quantity,
        "PricingUnit": unit,
        "ResourceId": target,
        "ResourceName": upstream,
        "ResourceType": "Model",
        "ServiceName": f"{owner} API",
        "SkuId": f"{name}/{charge.kind}",
        "SkuMeter": meter,
        "SkuPriceDetails": json.dumps({"x_ServiceTier": group.tier}),
        **sku_price(
            f"{name}/{charge.kind}/{group.tier}{_band(group, price)}",
            f"v{group.version}/{group.tier}/{charge.kind}@{charge.unit_pusd}",
        ),
        "x_Backend": "api",
        "x_Model": model,
        "x_OrganisationId": org,
        "x_PriceVersion": group.version,
        "x_ServiceTier": group.tier,
        "x_Simulated": simulated,
        "x_TokenKind": charge.kind,
    }


def _band(group: PriceGroup, price: Price | None) -> str:
    """Return the name of a price's long-prompt schedule, "" for the base rates."""
    if price is None:
        return ""
    least = 0 if price.terms.inclusive else 1
    reached = (
        schedule.above_tokens
        for schedule in price.terms.schedules
        if schedule.above_tokens and group.prompt_tokens >= schedule.above_tokens + least
    )
    above = max(reached, default=0)
    return f"/above-{above}" if above else ""


def _claim(claim: ClaimGroup) -> dict[str, Value]:
    """Return the columns of a claim beyond the booked cost, which has no quantity."""
    return {
        **account(f"provider:{claim.provider}", claim.provider, "API account"),
        **sub_account(claim.team),
        **dict.fromkeys(
            ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost"), claim.surplus_pusd
        ),
        "ChargeCategory": "Adjustment",
        "ChargeFrequency": "One-Time",
        "ChargeDescription": f"{claim.target}: claimed beyond what was held, in dispute",
        "ResourceId": claim.target,
        "ResourceName": claim.upstream_model,
        "ResourceType": "Model",
        "ServiceName": f"{claim.provider} API",
        "x_Backend": "api",
        "x_Model": claim.model,
        "x_OrganisationId": claim.org,
        "x_Simulated": claim.simulated,
    }


def _adjustment(adjustment: Adjustment, simulated: bool) -> dict[str, Value]:
    """Return the columns of an invoice difference: no price or quantity, and equal costs."""
    kind, _, owner = adjustment.party.partition(":")
    own = kind == "gpu"
    return {
        **account(adjustment.party, owner, "GPU contract" if own else "API account"),
        **(providers(OWN) if own else {}),
        **dict.fromkeys(
            ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost"), adjustment.pusd
        ),
        "ChargeCategory": "Adjustment",
        "ChargeFrequency": "One-Time",
        "ChargeDescription": f"Difference between the books and an invoice of {owner}",
        "ServiceName": OWN if own else f"{owner} API",
        "x_Backend": "own" if own else "api",
        "x_Bearer": "adjustments",
        "x_Simulated": simulated,
    }


def _span(start_us: int, period_us: int, part: Scope) -> tuple[int, int]:
    """Return a charge period. The first and the last one of a span may be partial."""
    return max(start_us, part.start_us), min(start_us + period_us, part.end_us)

"""Closed GPU hours as FOCUS charges: purchases, teams' use, idle and unavailable time.

A reserved or owned pool has a Purchase row (billed, no effective cost) and Usage rows that spread
it (effective cost, not billed). On demand, the usage itself is billed. Quantities are the GPU-hours
that an amount pays for at the contract's rate; consumed quantities are measured.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from ledger.accounts import US_PER_HOUR
from ledger.exports.focus_columns import account, providers, sku_price, sub_account
from ledger.exports.table import Value
from ledger.fleet.hourshares import HourContract, HourShare

OWN = "Own GPUs"  # provider, publisher and service in one
_UNIT = "GPU-Hours"
_COMMITTED = frozenset({"reserved", "owned"})


def gpu_charges(
    shares: Iterable[HourShare], contracts: Mapping[int, HourContract], *, purchases: bool
) -> Iterator[tuple[int, dict[str, Value]]]:
    """Yield the start of the charge period and the columns.

    Purchases require the shares of all teams (`purchases`).
    """
    bills: dict[tuple[int, int], int] = {}
    for share in shares:
        bill = (share.start_us, share.contract_id)
        bills[bill] = bills.get(bill, 0) + share.pusd
        if share.pusd or share.engine_us:
            yield share.start_us, _usage(share, contracts[share.contract_id])
    for (start_us, contract_id), pusd in bills.items() if purchases else ():
        contract = contracts[contract_id]
        if contract.billing in _COMMITTED and pusd:
            yield start_us, _purchase(contract, pusd)


def _usage(share: HourShare, contract: HourContract) -> dict[str, Value]:
    committed = contract.billing in _COMMITTED
    paid = _hours_paid(contract, share.pusd, share.engine_us)
    unused = committed and share.bearer != "used"
    commitment: dict[str, Value] = {
        "CommitmentDiscountStatus": "Unused" if unused else "Used",
        **_commitment(contract, paid),
    }
    team = None if share.team is None else sub_account(share.team)
    return {
        **_pool(contract, share.pusd, paid),
        **(commitment if committed else {}),
        **(team or {}),
        "BilledCost": 0 if committed else share.pusd,
        "EffectiveCost": share.pusd,
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargeDescription": f"GPU hours of {contract.pool}: {share.bearer}",
        "ConsumedQuantity": None if unused else _hours_of(contract, share.engine_us),
        "ConsumedUnit": None if unused else _UNIT,
        "PricingCategory": "Committed" if committed else "Standard",
        "x_Bearer": share.bearer,
    }


def _purchase(contract: HourContract, pusd: int) -> dict[str, Value]:
    paid = _hours_paid(contract, pusd, 0)
    return {
        **_pool(contract, pusd, paid),
        **_commitment(contract, paid),
        "BilledCost": pusd,
        "EffectiveCost": 0,
        "ChargeCategory": "Purchase",
        "ChargeFrequency": "Recurring",
        "ChargeDescription": f"GPU hours of {contract.pool}, {contract.billing}",
        "PricingCategory": "Standard",
    }


def _pool(contract: HourContract, pusd: int, paid: Fraction) -> dict[str, Value]:
    """Return the columns that all rows of a pool's hours share. The list cost is the bill."""
    rate = Fraction(contract.pusd_per_hour)
    sku = f"gpu/{contract.gpu_type}/{contract.billing}"
    return {
        **account(f"gpu:{contract.pool}", contract.source or contract.pool, "GPU contract"),
        **providers(OWN),
        "ContractedCost": pusd,
        "ContractedUnitPrice": rate,
        "ListCost": pusd,
        "ListUnitPrice": rate,
        "PricingQuantity": paid,
        "PricingUnit": _UNIT,
        "ResourceId": f"pool:{contract.pool}",
        "ResourceName": contract.pool,
        "ResourceType": contract.gpu_type,
        "ServiceName": OWN,
        "SkuId": sku,
        "SkuMeter": "GPU Hours",
        "SkuPriceDetails": json.dumps({"x_Billing": contract.billing}),
        **sku_price(sku, f"contract/{contract.id}"),
        "x_Backend": "own",
        "x_Pool": contract.pool,
        "x_Simulated": contract.simulated,
    }


def _commitment(contract: HourContract, paid: Fraction) -> dict[str, Value]:
    return {
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountId": f"gpu:{contract.pool}",
        "CommitmentDiscountName": contract.source or contract.pool,
        "CommitmentDiscountQuantity": paid,
        "CommitmentDiscountType": contract.billing.capitalize(),
        "CommitmentDiscountUnit": _UNIT,
    }


def _hours_paid(contract: HourContract, pusd: int, engine_us: int) -> Fraction:
    """Return the GPU-hours that the amount pays for; without a price, the measured ones."""
    if contract.pusd_per_hour == 0:
        return _hours_of(contract, engine_us)
    return Fraction(pusd, contract.pusd_per_hour)


def _hours_of(contract: HourContract, engine_us: int) -> Fraction:
    return Fraction(engine_us * contract.gpus, US_PER_HOUR)

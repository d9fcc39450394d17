"""Double-entry bookkeeping: the chart of accounts, and postings that always balance.

A positive amount is a debit, a negative one a credit. An API attempt debits the team's expense and
credits the payable of the provider. An attempt on an own engine debits the team's provisional share
and credits the payable of the GPU pool. Every hour, the close turns provisional shares into final
ones and adds idle and unavailable time, so that teams + idle + unavailable equal the bill exactly.
Corrections are further postings; no posting is edited.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from ledger.gpu_contracts import US_PER_HOUR, GpuContract, gpu_bill_pusd
from ledger.journals.records import AttemptOpened, AttemptSettled
from ledger.money import divide_half_even, split_largest_remainder

__all__ = [
    "SUSPENSE",
    "US_PER_HOUR",
    "AccountsError",
    "GpuContract",
    "HourClose",
    "Posting",
    "adjustments",
    "balanced",
    "close_hour",
    "correction_postings",
    "disputed_expense",
    "gpu_bill_pusd",
    "gpu_payable",
    "idle_expense",
    "postings_for_attempt",
    "postings_for_invoice",
    "postings_for_suspense",
    "provider_payable",
    "provisional_charge_pusd",
    "surplus_pusd",
    "suspense",
    "team_expense",
    "unavailable_expense",
]

SUSPENSE = ":suspense"  # how ids end of entries that wait for evidence


class AccountsError(ValueError):
    """Postings that do not balance, or amounts that cannot be closed: a bug in the caller."""


class Posting(msgspec.Struct, frozen=True):
    """One line of a journal entry: a positive amount is a debit, a negative one a credit."""

    account: str
    amount_pusd: int


@dataclass(frozen=True, slots=True)
class HourClose:
    """The close of one pool's hour: the bill, who bears it, and the postings of that split."""

    bill_pusd: int
    used_pusd: Mapping[str, int]  # by team, final
    idle_pusd: int
    unavailable_pusd: int
    postings: tuple[Posting, ...]


def provider_payable(provider: str) -> str:
    """Return the payable account of an API provider. It grows by credits."""
    return f"payable:provider:{provider}"


def gpu_payable(pool: str) -> str:
    """Return the payable account of a pool's GPU contract. It grows by credits."""
    return f"payable:gpu:{pool}"


def team_expense(team_id: str) -> str:
    return f"expense:team:{team_id}"


def disputed_expense(team_id: str) -> str:
    """Return the account of claims beyond a team's holds: owed until they are settled."""
    return f"disputed:team:{team_id}"


def idle_expense(pool: str) -> str:
    """Return the account of engine time that was paid for and ready, but not used."""
    return f"expense:idle:{pool}"


def unavailable_expense(pool: str) -> str:
    """Return the account of paid engine time while loading, crashed or drained."""
    return f"expense:unavailable:{pool}"


def suspense(provider: str) -> str:
    """Return the account of attempts that may be billed, held until their outcome is known."""
    return f"suspense:{provider}"


def adjustments(provider: str) -> str:
    """Return the account of differences between the ledger and a provider's invoice."""
    return f"adjustments:{provider}"


def balanced(lines: Iterable[tuple[str, int]]) -> tuple[Posting, ...]:
    """Return the postings of one entry: lines added up by account, zeros left out.

    Raises `AccountsError` when the amounts do not add up to 0.
    """
    sums: dict[str, int] = {}
    for account, amount in lines:
        sums[account] = sums.get(account, 0) + amount
    if sum(sums.values()):
        raise AccountsError(f"unbalanced by {sum(sums.values())} pico-USD: {sums}")
    return tuple(Posting(account, amount) for account, amount in sums.items() if amount)


def postings_for_attempt(
    opened: AttemptOpened, settled: AttemptSettled, *, suspended: bool = False
) -> tuple[Posting, ...]:
    """Return the postings of a settled attempt, none for an unpriced one.

    `suspended`: the upper bound was posted to suspense before, and is reversed. The cost of an
    unpriced attempt is unknown, which its row flags; it is never booked as zero. Raises
    `AccountsError` for a negative cost.
    """
    cost = settled.cost_pusd
    if cost is None:
        return ()
    if cost < 0:
        raise AccountsError(f"{opened.attempt_id} cost {cost} pico-USD")
    owed_to, surplus = _payable(opened), surplus_pusd(settled)
    lines = [
        (team_expense(opened.team_id), cost),
        (disputed_expense(opened.team_id), surplus),
        (owed_to, -cost - surplus),
    ]
    if suspended:
        lines += [(owner, -amount) for owner, amount in _suspense_lines(opened)]
    return balanced(lines)


def surplus_pusd(settled: AttemptSettled) -> int:
    """Return how much the target claims beyond the booked cost, in pico-USD."""
    if settled.claimed_pusd is None or settled.cost_pusd is None:
        return 0
    return max(0, settled.claimed_pusd - settled.cost_pusd)


def counted_claim_pusd(settled: AttemptSettled) -> int:
    """Return the part of the surplus that budgets count until it is reconciled, in pico-USD."""
    return max(0, min(surplus_pusd(settled), settled.plausible_pusd or 0))


def postings_for_suspense(opened: AttemptOpened) -> tuple[Posting, ...]:
    """Return the postings that keep the full hold in suspense until evidence arrives.

    There are none for own engines, which are owed for by contract.
    """
    return balanced(_suspense_lines(opened))


def postings_for_invoice(
    account: str, owed_to: str, *, booked_pusd: int, invoiced_pusd: int
) -> tuple[Posting, ...]:
    """Return the postings that bring the ledger to an invoiced amount.

    The difference is a separate line, which no team bears. `account` is the `adjustments` account
    that takes the difference, `owed_to` the payable account that was invoiced.
    """
    difference = invoiced_pusd - booked_pusd
    return balanced([(account, difference), (owed_to, -difference)])


def provisional_charge_pusd(engine_us: int, usd_per_hour_pusd: int, gpus: int) -> int:
    """Return the charge of an own attempt at settle: engine time at the contract rate.

    The result is in pico-USD, rounded half-even.
    """
    if min(engine_us, usd_per_hour_pusd, gpus) < 0:
        raise AccountsError("engine time, rate and GPUs are never negative")
    return divide_half_even(engine_us * usd_per_hour_pusd * gpus, US_PER_HOUR)


def close_hour(
    pool: str,
    bill_pusd: int,
    *,
    busy_us: Mapping[str, int],
    unavailable_us: int,
    provisional_pusd: Mapping[str, int],
    hour_us: int,
) -> HourClose:
    """Split one hour's bill by engine time into shares of teams, idle and unavailable time.

    The shares add up to the bill exactly. `hour_us` is the engine time that was paid for (replicas
    x the hour). Idle time is the remainder and never negative: when more work was measured than
    time was paid for, all shares shrink. `provisional_pusd` is what each team was charged at settle
    for this hour.
    """
    if min([bill_pusd, unavailable_us, hour_us, *busy_us.values()]) < 0:
        raise AccountsError("bills and times are never negative")
    teams = sorted(busy_us)
    idle_us = max(0, hour_us - unavailable_us - sum(busy_us.values()))
    weights = [*(busy_us[team] for team in teams), idle_us, unavailable_us]
    if not any(weights):
        weights[-2] = 1  # no team bears a bill for zero time
    *shares, idle, unavailable = split_largest_remainder(bill_pusd, weights)
    used = dict(zip(teams, shares, strict=True))
    charged = {team: pusd for team, pusd in provisional_pusd.items() if pusd}
    lines = [
        (team_expense(team), used.get(team, 0) - charged.get(team, 0))
        for team in sorted({*used, *charged})
    ]
    lines += [(idle_expense(pool), idle), (unavailable_expense(pool), unavailable)]
    lines.append((gpu_payable(pool), sum(charged.values()) - bill_pusd))
    return HourClose(bill_pusd, used, idle, unavailable, balanced(lines))


def correction_postings(
    pool: str,
    *,
    teams: Mapping[str, int],
    idle_pusd: int,
    unavailable_pusd: int,
    provisional_pusd: int,
) -> tuple[Posting, ...]:
    """Return the postings of a settlement after the close, all of them differences.

    `teams` holds how much more each team bears than its provisional charges. `provisional_pusd` was
    posted to the pool's payable account at settle and is reversed here.
    """
    lines = [(team_expense(team), pusd) for team, pusd in sorted(teams.items())]
    lines += [(idle_expense(pool), idle_pusd), (unavailable_expense(pool), unavailable_pusd)]
    lines.append((gpu_payable(pool), provisional_pusd))
    return balanced(lines)


def _payable(opened: AttemptOpened) -> str:
    if opened.backend == "own":
        return gpu_payable(opened.pool or opened.target)
    return provider_payable(opened.provider or opened.target)


def _suspense_lines(opened: AttemptOpened) -> list[tuple[str, int]]:
    if opened.backend == "own":
        return []
    provider = opened.provider or opened.target
    bound = opened.bound_pusd
    return [(suspense(provider), bound), (provider_payable(provider), -bound)]

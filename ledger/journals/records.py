"""The journal's records: what a gateway worker promises to the ledger, and nothing else.

A worker appends `AttemptOpened` before it dispatches and `AttemptSettled` before the last byte
leaves; the ledger writer applies both, each at most once, keyed by `attempt_id`. Records are the
only way from the request path into the books. Times are microseconds since the Unix epoch (UTC),
durations are microseconds by the monotonic clock, money is integer pico-USD. A member that this
version does not know makes a record none of ours: passed over, it would be lost (`payloads`).
"""

from enum import StrEnum
from typing import Literal

import msgspec

from ledger.journals.token_kinds import TOKEN_COLUMNS, TokenCounts

__all__ = [
    "TOKEN_COLUMNS",
    "AttemptLeg",
    "AttemptOpened",
    "AttemptSettled",
    "Basis",
    "CacheHit",
    "ComparedCost",
    "Hold",
    "Record",
    "RequestRefused",
    "Status",
    "TokenCounts",
]

Basis = Literal["reported", "continuous", "estimated", "bound"]
Status = Literal[
    "finished",  # the answer was complete
    "client_gone",  # the client hung up; settled at what was used
    "upstream_error",  # the target failed; partial usage kept
    "timeout",  # one of our deadlines ended it
    "rejected",  # the target refused before any work (4xx, 429, 503): nothing billed
]


class Hold(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An upper bound taken on one budget scope's window (`window` is its start, epoch seconds)."""

    scope: str
    window: int
    amount_pusd: int


class HoldState(StrEnum):
    """A hold ends once: at its cost, at no cost, or in suspense, until evidence ends it there."""

    HELD = "held"
    POSTED = "posted"
    VOIDED = "voided"
    SUSPENSE = "suspense"  # its attempt is lost: it counts in full, for it may have been billed


class ComparedCost(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The charge of a comparator: its price version and the token ratio applied.

    `ratio_ppm` scales tokens between tokenizers, in parts per million (1_000_000: unscaled).
    `cached_tokens` of the prompt were taken to be in its provider's cache; None: nobody said.
    """

    comparator: str
    price_version: int
    cost_pusd: int
    ratio_ppm: int = 1_000_000
    cached_tokens: int | None = None


class AttemptLeg(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One engine's part in an attempt that took two: its work, and the KV that it held for it.

    `transfer_us`: of the part that answers, from the end of the prompt's reading elsewhere to the
    first word: the move of its KV, and a step; None: nothing was moved, or no word came.
    """

    engine: str  # replica
    role: str  # prefill | decode
    busy_us: int
    kv_tokens: int
    held_us: int
    transfer_us: int | None
    outcome: str  # done | failed | left


class AttemptOpened(
    msgspec.Struct, frozen=True, tag="open", omit_defaults=True, forbid_unknown_fields=True
):
    """Written before dispatch; survives SIGKILL. Everything known before the answer."""

    attempt_id: str  # "{request_id}.{attempt_no}"
    request_id: str
    attempt_no: int
    opened_us: int
    key_id: str
    user_id: str | None
    team_id: str
    org_id: str
    kind: str  # router.request_kinds.RequestKind
    stream: bool
    model: str  # the logical model that was asked for
    target: str  # Candidate.name
    backend: Literal["own", "api"]
    pool: str | None
    engine: str | None  # replica, for own engines
    provider: str | None
    upstream_model: str
    simulated: bool
    policy: str
    policy_version: str
    reason: str  # router.reasons.Reason of the chosen candidate
    spill_reason: str | None  # why the own engine was not taken, when an API serves an own model
    price_version: int | None
    bound_pusd: int
    prompt_tokens_estimate: int
    ttft_predicted_us: int | None = None
    kv_headroom_ppm: int | None = None  # at the decision, of the best own engine
    bid_price_pusd_per_s: int | None = None
    holds: tuple[Hold, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    decision: bytes = b""  # msgpack of the frozen inputs and verdicts, <= 800 bytes
    # What a policy that only watches would have done; no target: it would have refused.
    shadow_policy: str | None = None
    shadow_target: str | None = None
    shadow_reason: str | None = None
    inputs: bytes = b""  # msgpack of all that the decision was given, exact; empty: not kept
    line_us: int = 0  # how long it stood in the gateway's line for a place, before its first try
    counts_on: tuple[str, ...] = ()  # other keys whose budgets bind its key; not kept in its row
    content: str | None = None  # kinds that were found and what was done; None: not inspected


class AttemptSettled(
    msgspec.Struct, frozen=True, tag="settle", omit_defaults=True, forbid_unknown_fields=True
):
    """Group-fsynced before the answer's last byte leaves; survives power loss.

    `cost_pusd` is the provider's charge for APIs, the provisional charge for own engines
    (`engine_us` of work at the contract rate). `None` means unpriced: flagged, never zero.
    `tier` is the service tier that the answer named, of one that named none and is booked at
    its bound the tier that its hold was made of; `unknown_tier`: the price does not list it,
    so that the standard rates were booked. `disputed`: the target reported usage that cannot be,
    by its own figures or by the text that came. `claimed_pusd`: what the target's own figures cost,
    where that is more than was booked. `partly_read`: its usage has counts that nobody here knows.
    `partly_priced`: it may have been charged what its price does not say. `unseen`: the attempt was
    given up, what the target made of it is not known, and its bound was booked. `plausible_pusd`:
    the part of what is claimed beyond `cost_pusd` that the model can have made, by its stated
    limits; None where that was not told. `legs`: its parts, where two engines took part; their
    `busy_us` add up to `engine_us`.
    """

    attempt_id: str
    settled_us: int
    status: Status
    http_status: int
    tokens: TokenCounts
    basis: Basis
    cost_pusd: int | None
    ttft_us: int | None
    duration_us: int
    engine_us: int = 0
    finish_reason: str | None = None
    error: str | None = None
    slo_met: bool | None = None
    compared: tuple[ComparedCost, ...] = ()
    tier: str | None = None
    unknown_tier: bool = False
    disputed: bool = False
    claimed_pusd: int | None = None
    partly_read: bool = False
    partly_priced: bool = False
    unseen: bool = False
    plausible_pusd: int | None = None
    legs: tuple[AttemptLeg, ...] = ()


class RequestRefused(
    msgspec.Struct, frozen=True, tag="refuse", omit_defaults=True, forbid_unknown_fields=True
):
    """No attempt was made: why, for the dashboard and for justifying every refusal."""

    request_id: str
    refused_us: int
    key_id: str
    team_id: str
    org_id: str
    model: str
    policy: str
    reason: str  # router.reasons.Reason of the best own or only candidate, or "budget", "rate"
    http_status: int
    scope: str | None = None  # the budget that refused
    decision: bytes = b""
    # Of that budget: the most that the request could have cost, what was left of how much (`None`
    # where 64 bits do not hold it), and its window.
    bound_pusd: int | None = None
    room_pusd: int | None = None
    limit_pusd: int | None = None
    since_us: int | None = None
    until_us: int | None = None
    content: str | None = None  # kinds that were found and what was done; None: not inspected


class CacheHit(
    msgspec.Struct, frozen=True, tag="hit", omit_defaults=True, forbid_unknown_fields=True
):
    """A request that an earlier answer was sent to: no attempt was made, and nothing is charged.

    `answered_by` is the request that the answer was made for, `target`, `backend` and the tokens
    are of its attempt. `avoided_pusd` is what that was booked at, at the prices that still hold:
    for an own engine its share of a bill that stays, with `engine_us` of work that was not done
    again. `None`: it has no price.
    """

    request_id: str
    hit_us: int
    key_id: str
    user_id: str | None
    team_id: str
    org_id: str
    kind: str
    stream: bool
    model: str
    policy: str
    target: str
    backend: Literal["own", "api"]
    answered_by: str
    age_us: int
    input_tokens: int
    output_tokens: int
    avoided_pusd: int | None
    engine_us: int = 0
    tags: tuple[tuple[str, str], ...] = ()


Record = AttemptOpened | AttemptSettled | RequestRefused | CacheHit

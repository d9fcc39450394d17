"""The records of a journal, by which a gateway worker reports to the ledger.

A worker appends `AttemptOpened` before it dispatches and `AttemptSettled` before the last byte
leaves. The ledger writer applies both, each at most once, keyed by `attempt_id`. Records are the
only way from the request path into the ledger. Times are microseconds since the Unix epoch (UTC),
durations are microseconds of the monotonic clock, money is integer pico-USD. A record with an
unknown member is left to a newer version, since skipping the member would lose it (`payloads`).
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
    "client_gone",  # the client disconnected; settled at the used amount
    "upstream_error",  # the target failed; partial usage kept
    "timeout",  # one of our deadlines ended it
    "rejected",  # the target refused before any work (4xx, 429, 503): nothing billed
]


class Hold(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An upper bound reserved on a window of one budget scope.

    `window` is the window's start in seconds since the epoch.
    """

    scope: str
    window: int
    amount_pusd: int


class HoldState(StrEnum):
    """State of a hold. A hold ends once: at its cost, at no cost, or in suspense.

    Evidence later ends a hold in suspense.
    """

    HELD = "held"
    POSTED = "posted"
    VOIDED = "voided"
    SUSPENSE = "suspense"  # its attempt is lost: it counts in full, for it may have been billed


class ComparedCost(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Charge of a comparator at a price version.

    `ratio_ppm` scales tokens between tokenizers, in parts per million (1_000_000: unscaled).
    `cached_tokens` of the prompt were assumed to be in the provider's cache; `None`: unknown.
    """

    comparator: str
    price_version: int
    cost_pusd: int
    ratio_ppm: int = 1_000_000
    cached_tokens: int | None = None


class AttemptLeg(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One engine's part in an attempt that two engines served: its work, and the KV it held.

    `transfer_us` of the answering part: from the end of prefill on the other engine to the first
    token, which is the KV transfer and one step. `None`: no transfer, or no token.
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
    """Record before dispatch, with everything known before the answer. It survives SIGKILL."""

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
    model: str  # the requested logical model
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
    # The choice of a shadow policy; without a target, it would have refused.
    shadow_policy: str | None = None
    shadow_target: str | None = None
    shadow_reason: str | None = None
    inputs: bytes = b""  # msgpack of all that the decision was given, exact; empty: not kept
    line_us: int = 0  # how long it stood in the gateway's line for a place, before its first try
    counts_on: tuple[str, ...] = ()  # other keys whose budgets bind its key; not kept in its row
    content: str | None = None  # kinds of content and actions; None: not inspected


class AttemptSettled(
    msgspec.Struct, frozen=True, tag="settle", omit_defaults=True, forbid_unknown_fields=True
):
    """Record of an attempt's end, durable before the answer's last byte leaves.

    `cost_pusd`: the provider's charge for APIs, the provisional charge for own engines (`engine_us`
    at the contract rate); `None` means unpriced, which is flagged and never zero. `tier`: the
    service tier named by the answer, else, if booked at the bound, that of the hold.
    `unknown_tier`: the price does not list the tier, so standard rates were booked. `disputed`: the
    target's usage is contradicted by its own counts or by the received text. `claimed_pusd`: the
    cost of the target's own counts, if above the booked cost. `partly_read`: usage has unknown
    counts. `partly_priced`: a charge may apply that the price lacks. `unseen`: the attempt was
    abandoned with unknown output, and its bound was booked. `plausible_pusd`: the part of the claim
    above `cost_pusd` that the model can have generated within its stated limits; `None` if unknown.
    `legs`: the parts of two engines, whose `busy_us` add up to `engine_us`.
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
    """Record of a request without any attempt, with the reason for the dashboard."""

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
    # That budget's figures: the highest cost of the request, remaining amount and limit (`None`
    # if above 64 bits), and its window.
    bound_pusd: int | None = None
    room_pusd: int | None = None
    limit_pusd: int | None = None
    since_us: int | None = None
    until_us: int | None = None
    content: str | None = None  # kinds of content and actions; None: not inspected


class CacheHit(
    msgspec.Struct, frozen=True, tag="hit", omit_defaults=True, forbid_unknown_fields=True
):
    """Record of a request answered from the response cache: no attempt, no charge.

    `answered_by` is the request of the stored answer; `target`, `backend` and tokens are those of
    its attempt. `avoided_pusd` is its booked cost at the prices in force, or for an own engine its
    share of an unchanged bill, with `engine_us` of work saved. `None`: it has no price.
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

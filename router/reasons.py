"""Reasons of a decision: the closed set of codes and the traits of each.

`REASONS` is the only table. A new reason is a member of `Reason` and its entry, both at the end.
Ledger and dashboard read overflow group and sentence from `ledger/reasons.json`, which `make
settings` writes from this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Code for why a candidate was chosen, or was not.

    Response header, metric label, ledger column and `policy explain` use these codes.
    """

    # chosen because
    CHEAPEST = "cheapest"  # least expected dollars + SLO penalty among the feasible
    STICKY = "sticky"  # the session's target is feasible
    ONLY = "only"  # the only feasible candidate
    BEST_EFFORT = "best_effort"  # nothing feasible, the policy said to try
    # feasible but not chosen because (or `sticky`: the session holds on to another target)
    COSTLIER = "costlier"  # a candidate with a better objective exists
    BID_PRICE = "bid_price"  # value density below the pool's bid price
    BUSIER = "busier"  # no dearer, but higher predicted load
    # filtered because
    MODEL = "model"
    FEATURE = "feature"
    UNHEALTHY = "unhealthy"
    LOADING = "loading"
    DRAINING = "draining"
    UNKNOWN_STATE = "unknown_state"
    CONTEXT = "context"
    RESIDENCY = "residency"
    UNPRICED = "unpriced"
    PRICE_CAP = "price_cap"
    KV_HEADROOM = "kv_headroom"
    CIRCUIT_OPEN = "circuit_open"
    RATE_LIMIT = "rate_limit"
    BUDGET = "budget"
    TTFT = "ttft"
    TPOT = "tpot"
    SALT = "salt"
    BATCH = "batch"  # a line of a batch waits for an engine that is idle
    WEIGHT = "weight"  # chosen: the request falls into this target's share (lost: into another's)
    CANARY = "canary"  # chosen: it is the canary's (filtered: it is not)
    CANDIDATES = "candidates"  # filtered: the policy names others
    QUALITY = "quality"  # filtered: the quality loss is too large, or is not stated
    STATIC = "static"  # nothing could be predicted: the operator's own order holds
    DISABLED = "disabled"  # filtered: an operator disabled it, whatever the policy
    PARTLY_PRICED = "partly_priced"  # filtered: a limit on money, and a charge that is not stated
    SPARE = "spare"  # feasible: it reads prompts for other engines, and serves if they cannot
    CONTENT = "content"  # filtered: what was found in the request may not leave the network


Rejection = tuple[Reason, str]


class Outlook(StrEnum):
    """Time at which a candidate with this reason may serve the request."""

    FEASIBLE = "feasible"  # now: the reason rejects nothing
    PERMANENT = "permanent"  # never, without a change of the request or the configuration
    FULL = "full"  # when the target, which is available, has capacity again
    AWAY = "away"  # when the target is available again
    LATER = "later"  # when a budget resets or an engine is idle


class Overflow(StrEnum):
    """Sentence on an own engine's capacity, for a reason that made an API serve instead."""

    LACK_OF_CAPACITY = "lack_of_capacity"  # more engines would have kept the request
    AWAY = "away"  # more of the same engines would have been as much away
    CANNOT_SERVE = "cannot_serve"  # no number of engines would have kept the request
    BY_CHOICE = "by_choice"  # money or order decided, or the request could wait


@dataclass(frozen=True, slots=True)
class Remedy:
    """Error returned to the client. `error` is a key of the gateway's error table.

    `member` is the request field to change, or `None` if the error text names the field.
    """

    error: str
    member: str | None
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonTraits:
    """Properties of a reason.

    `place` is the code in packed decisions: it is never changed and never reused. `sentence` is
    shown on the dashboard, `explained` by `policy explain`. `remedy` is set if the outlook is
    permanent. `best_effort` says that a best effort disregards the reason: promises and likely
    refusals, never rules, money or a missing state.
    """

    place: int
    outlook: Outlook
    overflow: Overflow
    sentence: str
    explained: str | None = None
    remedy: Remedy | None = None
    best_effort: bool = False


_FEASIBLE, _PERMANENT, _LATER = Outlook.FEASIBLE, Outlook.PERMANENT, Outlook.LATER
_FULL, _GONE = Outlook.FULL, Outlook.AWAY
_LACKING, _AWAY = Overflow.LACK_OF_CAPACITY, Overflow.AWAY
_UNABLE, _CHOICE = Overflow.CANNOT_SERVE, Overflow.BY_CHOICE
_LEFT_OUT = Remedy(
    "bad_request",
    "model",
    "Its policy leaves them out: name another model, or ask for another policy.",
)

REASONS: Final[Mapping[Reason, ReasonTraits]] = {
    Reason.CHEAPEST: ReasonTraits(
        place=0, outlook=_FEASIBLE, overflow=_CHOICE,
        sentence="cheapest that meets the SLO",
        explained="least dollars and SLO penalty of what was feasible",
    ),
    Reason.STICKY: ReasonTraits(
        place=1, outlook=_FEASIBLE, overflow=_CHOICE,
        sentence="same target as the session",
        explained="its session goes on where it was",
    ),
    Reason.ONLY: ReasonTraits(
        place=2, outlook=_FEASIBLE, overflow=_CHOICE,
        sentence="the only feasible target",
        explained="nothing else was feasible",
    ),
    Reason.BEST_EFFORT: ReasonTraits(
        place=3, outlook=_FEASIBLE, overflow=_CHOICE,
        sentence="nothing was feasible, policy tries anyway",
        explained="nothing was feasible, and the policy says to try",
    ),
    Reason.COSTLIER: ReasonTraits(
        place=4, outlook=_FEASIBLE, overflow=_CHOICE,
        sentence="own engine was the costlier choice",
    ),
    Reason.BID_PRICE: ReasonTraits(
        # a loaded engine kept its time for work that is worth more
        place=5, outlook=_FEASIBLE, overflow=_LACKING,
        sentence="engine time was worth more to other requests",
        explained="its time was worth more to other requests",
    ),
    Reason.BUSIER: ReasonTraits(
        # held against another replica's load
        place=6, outlook=_FEASIBLE, overflow=_LACKING,
        sentence="another replica was less busy",
    ),
    Reason.MODEL: ReasonTraits(
        place=7, outlook=_PERMANENT, overflow=_UNABLE,
        sentence="this kind of request is not served there",
        remedy=Remedy(
            "bad_request",
            "model",
            "Name a model that serves this path: `GET /v1/models` lists the `kinds` of each.",
        ),
    ),
    Reason.FEATURE: ReasonTraits(
        place=8, outlook=_PERMANENT, overflow=_UNABLE,
        sentence="engine lacks a feature that was asked for",
        remedy=Remedy("unsupported", None, ""),  # the gateway names the members that ask for it
    ),
    Reason.UNHEALTHY: ReasonTraits(
        place=9, outlook=_GONE, overflow=_AWAY,
        sentence="engine down",
        explained="it is down",
    ),
    Reason.LOADING: ReasonTraits(
        place=10, outlook=_GONE, overflow=_AWAY,
        sentence="engine still loading",
    ),
    Reason.DRAINING: ReasonTraits(
        place=11, outlook=_GONE, overflow=_AWAY,
        sentence="engine draining",
    ),
    Reason.UNKNOWN_STATE: ReasonTraits(
        place=12, outlook=_GONE, overflow=_AWAY,
        sentence="engine state unknown",
        explained="nobody knows how it is",
    ),
    Reason.CONTEXT: ReasonTraits(
        place=13, outlook=_PERMANENT, overflow=_UNABLE,
        sentence="prompt and longest answer exceed the context",
        remedy=Remedy("context", None, "Shorten the prompt or lower `max_tokens`."),
    ),
    Reason.RESIDENCY: ReasonTraits(
        place=14, outlook=_PERMANENT, overflow=_UNABLE,
        sentence="data may not leave the network",
        remedy=Remedy(
            "residency",
            "model",
            "The key, the model, its policy or what the request goes on from is internal-only: "
            "name a model with targets inside the network, or ask for a key or a policy with "
            "`residency: any`.",
        ),
    ),
    Reason.UNPRICED: ReasonTraits(
        place=15, outlook=_PERMANENT, overflow=_CHOICE,
        sentence="no price known",
        remedy=Remedy(
            "bad_request",
            "model",
            "Name a model whose price is known, or ask for a price to be set.",
        ),
    ),
    Reason.PRICE_CAP: ReasonTraits(
        place=16, outlook=_PERMANENT, overflow=_CHOICE,
        sentence="above the policy's price cap",
        remedy=Remedy(
            "bad_request",
            "max_tokens",
            "Shorten the prompt, lower `max_tokens` or `n`, or ask for a higher "
            "`max_usd_per_request`.",
        ),
    ),
    Reason.KV_HEADROOM: ReasonTraits(
        place=17, outlook=_FULL, overflow=_LACKING,
        sentence="engine memory (KV cache) full",
        explained="no room in its KV cache",
        best_effort=True,
    ),
    Reason.CIRCUIT_OPEN: ReasonTraits(
        place=18, outlook=_GONE, overflow=_AWAY,
        sentence="target failing, circuit open",
        best_effort=True,
    ),
    Reason.RATE_LIMIT: ReasonTraits(
        place=19, outlook=_FULL, overflow=_CHOICE,
        sentence="rate limit reached",
        best_effort=True,
    ),
    Reason.BUDGET: ReasonTraits(
        place=20, outlook=_LATER, overflow=_CHOICE,
        sentence="budget spent",
    ),
    Reason.TTFT: ReasonTraits(
        # the first token would have come too late behind the others
        place=21, outlook=_FULL, overflow=_LACKING,
        sentence="first token would come too late",
        explained="the first token would have come too late",
        best_effort=True,
    ),
    Reason.TPOT: ReasonTraits(
        # one sequence too many for the promised pace
        place=22, outlook=_FULL, overflow=_LACKING,
        sentence="tokens would come too slowly",
        explained="tokens would have come too slowly",
        best_effort=True,
    ),
    Reason.SALT: ReasonTraits(
        place=23, outlook=_PERMANENT, overflow=_UNABLE,
        sentence="cache cannot be isolated for this team",
        remedy=Remedy(
            "isolation",
            "model",
            "The key isolates its prefix cache: name a model whose targets do, or ask for a key "
            "with `isolation: none`.",
        ),
    ),
    Reason.BATCH: ReasonTraits(
        place=24, outlook=_LATER, overflow=_CHOICE,
        sentence="a batch's line waits for idle engines",
    ),
    Reason.WEIGHT: ReasonTraits(
        place=25, outlook=_FEASIBLE, overflow=_CHOICE,
        sentence="its share of the policy's weights",
        explained="it falls into this target's share",
    ),
    Reason.CANARY: ReasonTraits(
        place=26, outlook=_PERMANENT, overflow=_CHOICE,
        sentence="the canary's share",
        explained="it falls into the canary's share",
        remedy=_LEFT_OUT,
    ),
    Reason.CANDIDATES: ReasonTraits(
        place=27, outlook=_PERMANENT, overflow=_CHOICE,
        sentence="the policy names other targets",
        remedy=_LEFT_OUT,
    ),
    Reason.QUALITY: ReasonTraits(
        place=28, outlook=_PERMANENT, overflow=_UNABLE,
        sentence="quality below what the policy allows",
        remedy=_LEFT_OUT,
    ),
    Reason.STATIC: ReasonTraits(
        place=29, outlook=_FEASIBLE, overflow=_CHOICE,
        sentence="nothing could be predicted: the configured order",
        explained="nothing could be predicted: the configuration's own order",
    ),
    Reason.DISABLED: ReasonTraits(
        place=30, outlook=_GONE, overflow=_CHOICE,
        sentence="kept away by an operator",
        explained="an operator keeps it away",
    ),
    Reason.PARTLY_PRICED: ReasonTraits(
        place=31, outlook=_PERMANENT, overflow=_CHOICE,
        sentence="price partly known, and a limit on money applies",
        explained="its price is partly known, and a limit on money applies",
        remedy=Remedy(
            "bad_request",
            "model",
            "Name a model whose price is wholly known, or ask for what is missing to be stated "
            "in a price file.",
        ),
    ),
    Reason.SPARE: ReasonTraits(
        place=32, outlook=_FEASIBLE, overflow=_LACKING,
        sentence="engine reads prompts for others",
        explained="it reads prompts for others, which can serve",
    ),
    Reason.CONTENT: ReasonTraits(
        place=33, outlook=_PERMANENT, overflow=_UNABLE,
        sentence="content that may not leave was found",
        explained="what was found in the request may not leave the network",
        remedy=Remedy(
            "content",
            None,
            "Its policy keeps what was found inside: name a model with targets inside the network, "
            "or leave out what is named.",
        ),
    ),
}  # fmt: skip


def with_outlook(*outlooks: Outlook) -> frozenset[Reason]:
    """Return the reasons with one of the outlooks."""
    return frozenset(reason for reason, traits in REASONS.items() if traits.outlook in outlooks)


# Waiting does not change these; their filters run first.
PERMANENT: Final = with_outlook(Outlook.PERMANENT)

"""Operation of `breakeven policy explain`: why a request is routed where it is.

A past request is found by id: every attempt with the candidates' numbers, and its decision repeated
from what the ledger stored. A hypothetical request is planned as this host would do now; nothing is
sent. A team's key sees its own team only; another team's request is reported as missing.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from gateway.auth import EVERY_TEAM, USAGE
from gateway.control.admin.verb import NUMBER_LIMIT, OperationContext, OperationRefused, verb
from gateway.control.decisions.hypothetical import HypotheticalRequest, explain
from gateway.control.decisions.recorded import read_recorded_decision
from gateway.control.pricing.configured import price_aliases
from ledger.prices.stored import load_price_book
from router.explain import as_dict, as_lines
from router.types import Decision

_Tokens = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_LIMIT)]


class ExplainInput(msgspec.Struct, forbid_unknown_fields=True):
    """Either `request_id`, or `model` with the properties of a hypothetical request."""

    request_id: Annotated[str, msgspec.Meta(max_length=64, description="a past one")] | None = None
    model: Annotated[str, msgspec.Meta(max_length=256, description="or: for it")] | None = None
    team: (
        Annotated[str, msgspec.Meta(max_length=256, description="asked by; default: one's own")]
        | None
    ) = None
    prompt_tokens: _Tokens = 500
    max_tokens: _Tokens | None = None
    content: (
        Annotated[str, msgspec.Meta(max_length=400, description="kinds that it holds: card,email")]
        | None
    ) = None


def decision_document(decisions: Sequence[Decision]) -> dict[str, Any]:
    """Return the decision that acts on a hypothetical request, and those of earlier stages."""
    *earlier, acting = decisions
    lines = [
        f"  before: {line}"
        for decision in earlier
        for line in as_lines(decision, has_later_stage=True)
    ]
    document = as_dict(acting)
    if earlier:  # `otherwise` acts on the last decision alone
        document["earlier"] = [as_dict(decision) | {"otherwise": None} for decision in earlier]
    return {"attempts": [], "decision": document, "lines": [*lines, *as_lines(acting)]}


@verb(
    "GET /decisions",
    USAGE,
    "policy explain",
    "Why a past request went where it went, or where a supposed one would go, with every number",
    ExplainInput,
)
def decisions_explain(place: OperationContext, given: ExplainInput) -> dict[str, Any]:
    if (given.request_id is None) == (given.model is None):
        raise OperationRefused("name either `request_id` or `model`", param="request_id")
    team = _only_team(place)
    if given.request_id is not None:
        found = read_recorded_decision(place.ledger, given.request_id, team)
        if found is None:
            words = (
                f"the ledger has no request `{given.request_id}`: check the id; a request is "
                "recorded within a second of its end"
            )
            raise OperationRefused(words, kind="no_request", param="request_id")
        document = {"attempts": found.attempts, "decision": None, "lines": found.lines}
    else:
        document = _explain_hypothetical(place, given, team)
    # Infinite numbers (the age of an engine never seen) are null in JSON.
    finite: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return finite


def _explain_hypothetical(
    place: OperationContext, given: ExplainInput, only: str | None
) -> dict[str, Any]:
    assert given.model is not None, "one of both was named"
    if only is not None and given.team not in (None, only):
        raise OperationRefused(
            "this key may read its own team only: leave `team` out", kind="forbidden", param="team"
        )
    question = HypotheticalRequest(
        given.model, given.team or only or "default", given.prompt_tokens, given.max_tokens,
        split_kinds(given.content),
    )  # fmt: skip
    prices = load_price_book(place.ledger, price_aliases(place.settings))
    decisions = explain(place.settings, question, place.ledger, prices)
    if decisions is None:
        raise OperationRefused(
            f"there is no model named `{given.model}`; `GET /v1/models` lists all",
            kind="no_model",
            param="model",
        )
    return decision_document(decisions)


def split_kinds(text: str | None) -> tuple[str, ...]:
    """Return the content kinds of a comma-separated list."""
    return tuple(filter(None, (kind.strip() for kind in (text or "").split(","))))


def _only_team(place: OperationContext) -> str | None:
    """Return the team that the caller is limited to; `None` if it may see all."""
    whose = place.identity
    return None if whose is None or USAGE + EVERY_TEAM in whose.scopes else whose.team_id


VERBS = (decisions_explain,)

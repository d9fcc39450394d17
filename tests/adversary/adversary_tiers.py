"""Two providers of one account: `up`, and `openai`, whose targets ask for the tier `priority`.

A client names a tier, names none, or wants the standard one alone in the words of Messages. An
honest upstream serves what it is asked for or, as OpenAI does in a rush, less; it says which, or
not. Both are billed by one account.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from adversary_answers import WORD, answered
from adversary_calls import AdversaryCall
from adversary_usage import openai
from hypothesis import strategies as st
from msgspec.structs import replace as replace_counts

from ledger.journals.records import TokenCounts

DEAR, USUAL = "priority", "standard"


class TierWish(NamedTuple):
    """What a client writes, what its target is asked for, and the answers: told, and billed."""

    members: dict[str, str]
    standard_only: bool
    asks: str
    answers: tuple[tuple[str | None, str], ...]


_AS_DEAR = ((None, DEAR), (DEAR, DEAR), ("default", USUAL))
WISHES = (
    TierWish({}, False, "priority", _AS_DEAR),
    TierWish({"service_tier": "priority"}, False, "priority", _AS_DEAR),
    TierWish({"service_tier": "default"}, False, "default", ((None, USUAL), ("default", USUAL))),
    TierWish({"service_tier": "auto"}, False, "auto", (("default", USUAL), (DEAR, DEAR))),
    TierWish({}, True, "default", ((None, USUAL), ("default", USUAL))),
)


@st.composite
def of_account(draw: Any, asked: Any, *, leaves: bool = False) -> AdversaryCall:
    """A call of either provider; `leaves`: its client does, before it is told the tier."""
    body, made = draw(asked)
    wish = draw(st.sampled_from(WISHES))
    at_dear = bool(draw(st.integers(0, 3)))
    asks = wish.asks if at_dear else None
    answers = wish.answers if at_dear or wish.members else wish.answers[-1:]
    told, billed = draw(st.sampled_from(answers))
    if leaves and told is not None:
        told, billed = answers[0] if answers[0][0] is None else (None, USUAL)
    body = {**body, **wish.members, "model": "openai/m" if at_dear else "up/m"}
    usage = openai(made) if told is None else {**openai(made), "service_tier": told}
    call = answered(body, made, usage, tier=billed, asks=asks, standard_only=wish.standard_only)
    return _left(draw, call, made, body.get("n", 1)) if leaves else call


def _left(draw: Any, call: AdversaryCall, made: TokenCounts, n: int) -> AdversaryCall:
    words = [piece.count(WORD.encode()) for piece in call.pieces]
    leave_at = draw(st.integers(0, len(words) - 2 - n))
    least = replace_counts(made, output=made.reasoning + sum(words[:leave_at]))
    return replace(call, made=None, leave_at=leave_at, least=least)

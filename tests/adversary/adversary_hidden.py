"""Output that no text shows: thoughts that nobody counts apart, answers that a filter withheld.

Honest providers bill it, within what was asked for; nobody can check it. A false figure of the same
look is one that cannot be told from it: it costs the hold at most, and bears no mark.
"""

import json
from dataclasses import replace
from typing import Any

from adversary_answers import WORD, answered
from adversary_calls import AdversaryCall
from adversary_usage import openai
from hypothesis import strategies as st
from msgspec.structs import replace as replace_counts

from ledger.journals.records import TokenCounts

ASKS = st.sampled_from(
    (
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"reasoning_effort": "high"},
        {"enable_thinking": True},
    )
)
THOUGHT = st.integers(1, 5_000)
CALL = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}
JSON = {"response_format": {"type": "json_object"}}


def plain(made: TokenCounts) -> dict[str, Any]:
    """Usage that counts thoughts as output, and does not say how many there were."""
    total = {"prompt_tokens": made.whole_prompt, "completion_tokens": made.output}
    return {**total, "total_tokens": made.whole_prompt + made.output}


def _asked(
    made: tuple[dict, TokenCounts], thought: int, **members: Any
) -> tuple[dict, TokenCounts]:
    """The request with room for its thoughts, and what was made with them."""
    body, one = made
    n = body.get("n", 1)
    whole = replace_counts(one, output=one.output + n * thought)
    return {**body, **members, "max_tokens": whole.output // n}, whole


def hidden(asked: Any, at: str = "last") -> Any:
    """Thoughts that are a part of the completion's count, and stand nowhere else."""

    def call(made: tuple[dict, TokenCounts], thought: int, asks: dict) -> AdversaryCall:
        body, whole = _asked(made, thought, **asks)
        said = answered(body, made[1], plain(whole), at=at)
        return replace(said, made=whole)

    return st.builds(call, asked, THOUGHT, ASKS)


def withheld(asked: Any) -> Any:
    """A filter took all of the text away after it was made; nobody asked for thoughts."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        body, one = {**made[0], "stream": False}, made[1]
        n = body.get("n", 1)
        body["max_tokens"] = one.output // n
        choices = [
            {"index": index, "message": {"content": None}, "finish_reason": "content_filter"}
            for index in range(n)
        ]
        answer = json.dumps({"id": "c", "choices": choices, "usage": plain(one)}).encode()
        return replace(answered(body, one, None), pieces=(answer,))

    return asked.map(call)


def overstated(asked: Any) -> Any:
    """As `hidden`, of a model that thought nothing: within the hold nobody can tell."""

    def call(made: tuple[dict, TokenCounts], thought: int, asks: dict) -> AdversaryCall:
        body, whole = _asked(made, thought, **asks)
        said = answered(body, made[1], plain(whole))
        return replace(said, made=None, least=made[1], is_odd=True)

    return st.builds(call, asked, THOUGHT, ASKS)


def untold(asked: Any) -> Any:
    """No usage at all of an answer that was thought about, at a target that never told any.

    Of one that did tell, it would be as fast as it was seen to be: here no time passes.
    """

    def call(made: tuple[dict, TokenCounts], thought: int, asks: dict) -> AdversaryCall:
        body, whole = _asked(made, thought, **asks)
        return replace(answered(body, made[1], None), made=None, least=_output_of(whole))

    return st.builds(call, asked, THOUGHT, ASKS)


def broken(asked: Any) -> Any:
    """A stream that ends while its model thinks, or soon after."""

    def call(
        made: tuple[dict, TokenCounts], thought: int, asks: dict, pieces: int
    ) -> AdversaryCall:
        body, _ = _asked(made, thought, stream=True, **asks)
        said = answered(body, made[1], None)
        kept = said.pieces[:pieces]
        words = sum(piece.count(WORD.encode()) for piece in kept)
        least = TokenCounts(output=body.get("n", 1) * thought + words)
        return replace(said, pieces=kept, made=None, least=least, is_odd=True)

    return st.builds(call, asked, THOUGHT, ASKS, st.integers(0, 1))


def kept_back(asked: Any) -> Any:
    """A call of a tool, or JSON, is written in silence until the gateway gives the target up."""

    def call(
        made: tuple[dict, TokenCounts], written: int, members: dict, silent_at: int
    ) -> AdversaryCall:
        body, _ = _asked(made, written, stream=True, **members)
        said = answered(body, made[1], None)
        words = sum(piece.count(WORD.encode()) for piece in said.pieces[:silent_at])
        least = TokenCounts(output=body.get("n", 1) * written + words)
        return replace(said, made=None, silent_at=silent_at, least=least)

    return st.builds(call, asked, THOUGHT, st.sampled_from((CALL, JSON)), st.integers(0, 1))


def in_asked_tier(asked: Any, tier: str) -> Any:
    """The answer does not say in which tier it ran: it is the one that was asked for."""

    def call(made: tuple[dict, TokenCounts]) -> AdversaryCall:
        return answered({**made[0], "service_tier": tier}, made[1], openai(made[1]), tier=tier)

    return asked.map(call)


def _output_of(made: TokenCounts) -> TokenCounts:
    return TokenCounts(output=made.output)

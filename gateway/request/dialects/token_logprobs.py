"""Log probabilities of an answer's tokens, converted from chat to Responses. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

ENTRY_BYTES: Final = 128  # rough size of a token with its probability in an event


def token_logprobs(choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a choice's tokens, each with its likely alternatives."""
    told = choice.get("logprobs")
    listed = told.get("content") if isinstance(told, dict) else None
    return [
        {**_token(entry), "top_logprobs": _tokens(entry.get("top_logprobs"))}
        for entry in (listed if isinstance(listed, list) else ())
        if _is_token(entry)
    ]


def tokens_of_text(tokens: Sequence[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Return the last tokens that make up a text; engines list those of reasoning before."""
    left = len(text)
    for number in range(len(tokens), 0, -1):
        if left <= 0:
            return list(tokens[number:])
        left -= len(tokens[number - 1]["token"])
    return list(tokens)


def held_bytes(tokens: Sequence[Mapping[str, Any]]) -> int:
    return sum(ENTRY_BYTES * (1 + len(token["top_logprobs"])) for token in tokens)


def _tokens(listed: Any) -> list[dict[str, Any]]:
    return [
        _token(entry) for entry in (listed if isinstance(listed, list) else ()) if _is_token(entry)
    ]


def _is_token(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("token"), str)
        and isinstance(entry.get("logprob"), int | float)
    )


def _token(entry: Mapping[str, Any]) -> dict[str, Any]:
    given = entry.get("bytes")
    return {
        "token": entry["token"],
        "bytes": given if isinstance(given, list) else [],
        "logprob": entry["logprob"],
    }

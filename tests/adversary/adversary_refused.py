"""Errors whose body counts what was made, and searches that are limited or that no usage tells."""

import json
from dataclasses import replace
from typing import Any

from adversary_answers import answered
from adversary_calls import AdversaryCall
from adversary_usage import openai
from hypothesis import strategies as st
from msgspec.structs import replace as replace_counts

from ledger.journals.records import TokenCounts

STATUSES = st.sampled_from((400, 402, 403, 404, 405, 413, 422))


def counted_refusal(asked: Any) -> Any:
    """A refusal of any status, with the usage of an answer that was made before."""

    def call(made: tuple[dict, TokenCounts], status: int) -> AdversaryCall:
        body, one = made
        told = {"error": {"message": "no", "code": "oops"}, "usage": openai(one)}
        said = answered(body, one, None)
        return replace(said, pieces=(json.dumps(told).encode(),), status=status)

    return st.builds(call, asked, STATUSES)


def broken_search(asked: Any) -> Any:
    """A stream that ends after its target searched, and read what it found."""

    def call(
        made: tuple[dict, TokenCounts], more: int, searches: int, pieces: int
    ) -> AdversaryCall:
        body, one = made
        read = replace_counts(one, input=one.input + more, output=0, searches=searches)
        said = answered({**body, "web_search_options": {}}, one, None)
        return replace(said, pieces=said.pieces[:pieces], made=None, least=read)

    return st.builds(call, asked, st.integers(0, 20_000), st.integers(1, 5), st.integers(0, 2))


def limited_search(asked: Any, *, is_lie: bool = False) -> Any:
    """A search whose request says how many it may be, at a price that does not say it.

    A lie is of more searches than the request allows.
    """

    def call(made: tuple[dict, TokenCounts], most: int, share: float) -> AdversaryCall:
        body, one = made
        searches = most + 1 + round(90 * share) if is_lie else round(most * share)
        tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": most}
        read = replace_counts(one, searches=searches)
        usage = {**openai(read), "num_search_queries": searches}
        least = replace_counts(one, searches=most) if is_lie else TokenCounts()
        said = answered({**body, "tools": [tool]}, one, usage)
        return replace(said, made=None if is_lie else read, least=least, is_lie=is_lie)

    return st.builds(call, asked, st.integers(1, 9), st.floats(0, 1))

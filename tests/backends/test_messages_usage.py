"""Usage of Messages: each count once, what contradicts itself told, what nobody knows seen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.messages_usage import CONTRADICTING, chat_usage
from ledger.cache_conventions import Convention
from ledger.journals.records import TokenCounts
from ledger.usage import has_unread, tokens_from_usage

USAGE = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 200,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens": 2,
    "server_tool_use": None,
    "service_tier": "priority",
}


def read(usage: dict[str, Any]) -> TokenCounts:
    return tokens_from_usage(chat_usage(usage), Convention.CACHED_INSIDE)


def test_usage_is_read_as_it_is_billed() -> None:
    assert read(USAGE) == TokenCounts(
        input=4, cached=200, cache_write=10, cache_write_1h=20, output=2
    )
    searched = {**USAGE, "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 2}}
    assert read(searched).searches == 3
    thought = {**USAGE, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}}
    assert (read(thought).output, read(thought).reasoning) == (9, 5)
    assert read({"input_tokens": 4, "output_tokens": 1}) == TokenCounts(input=4, output=1)


@given(
    st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6),
    st.integers(0, 10**6),
)  # fmt: skip
def test_no_count_is_lost_or_counted_twice(fresh: int, read_: int, w5: int, w60: int, out: int):
    usage = {
        "input_tokens": fresh, "cache_read_input_tokens": read_, "output_tokens": out,
        "cache_creation_input_tokens": w5 + w60,
        "cache_creation": {"ephemeral_5m_input_tokens": w5, "ephemeral_1h_input_tokens": w60},
    }  # fmt: skip
    assert read(usage) == TokenCounts(
        input=fresh, cached=read_, cache_write=w5, cache_write_1h=w60, output=out
    )


def test_all_calls_of_the_model_are_counted() -> None:
    """The totals leave out what made the conversation short."""
    calls = [
        {"type": "compaction", "input_tokens": 1000, "output_tokens": 300},
        {
            "type": "message", "input_tokens": 4, "cache_read_input_tokens": 200,
            "cache_creation_input_tokens": 30, "output_tokens": 2,
        },
    ]  # fmt: skip
    assert read({**USAGE, "iterations": calls}) == TokenCounts(
        input=1004, cached=200, cache_write=10, cache_write_1h=20, output=302
    )
    assert not has_unread(chat_usage({**USAGE, "iterations": calls}))


def test_what_nobody_knows_stays_to_be_seen() -> None:
    advised = [{"type": "advisor_message", "model": "dear", "input_tokens": 9, "output_tokens": 9}]
    for more in ({"iterations": advised}, {"server_tool_use": {"code_execution_requests": 1}}):
        assert has_unread(chat_usage({**USAGE, **more}))
    assert chat_usage({"input_tokens": "many"}) == {"input_tokens": "many"}


TOTALS = {"input_tokens": 300, "output_tokens": 90}
CALL = {"type": "message", "input_tokens": 300, "output_tokens": 90}
SHRUNK = {"type": "compaction", "input_tokens": 1000, "output_tokens": 50}
LISTS = [
    # What the list says, what is read, whether it contradicts the totals.
    ([{**CALL, "input_tokens": 1, "output_tokens": 1}], {}, (300, 0, 90), True),
    ([{**CALL, "output_tokens": 95}], {}, (300, 0, 95), True),
    ([CALL], {}, (300, 0, 90), False),
    ([SHRUNK, CALL], {}, (1300, 0, 140), False),
    ([SHRUNK, {**CALL, "input_tokens": 100, "output_tokens": 40}, CALL], {"input_tokens": 400,
      "output_tokens": 130}, (1400, 0, 180), False),
    ([SHRUNK, CALL], {"input_tokens": 1300, "output_tokens": 140}, (1300, 0, 140), False),
    # A list without counts of caches takes none away.
    ([SHRUNK, CALL], {"cache_read_input_tokens": 700}, (1300, 700, 140), False),
    ([SHRUNK], {}, (1300, 0, 140), False),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "totals", "counts", "differs"), LISTS)
def test_of_totals_and_their_list_the_larger_counts(calls, totals, counts, differs) -> None:
    chat = chat_usage({**TOTALS, **totals, "iterations": calls})
    found = tokens_from_usage(chat, Convention.CACHED_INSIDE)
    assert (found.input, found.cached, found.output) == counts
    assert (CONTRADICTING in chat, has_unread(chat)) == (differs, differs)


ODD = [7, "x", [1], -3, {"n": [{}]}]
MALFORMED = [
    *({"output_tokens_details": value} for value in ODD[:3]),
    *({"cache_creation": value} for value in ODD[:3]),
    *({"server_tool_use": value} for value in ODD[:3]),
    *({"iterations": value} for value in (7, "x", [1], {"n": 1})),
    *({"iterations": [{**CALL, "cache_creation": value}]} for value in ODD[:3]),
    *({"iterations": [{**CALL, "cache_read_input_tokens": value}]} for value in ODD[1:]),
    *({"iterations": [{**CALL, "output_tokens_details": value}]} for value in ODD[:3]),
    {"cache_creation": {"ephemeral_5m_input_tokens": -1}},
]


@pytest.mark.parametrize("more", MALFORMED)
def test_what_is_malformed_is_told_and_takes_nothing_away(more) -> None:
    chat = chat_usage({**TOTALS, **more})
    assert CONTRADICTING in chat
    found = tokens_from_usage(chat, Convention.CACHED_INSIDE)
    assert (found.input, found.output) == (300, 90)


def test_ages_without_a_total_are_written_and_unknown_members_are_seen() -> None:
    ages = {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 20}
    found = read({**TOTALS, "cache_creation": ages})
    assert (found.input, found.cache_write, found.cache_write_1h) == (300, 1000, 20)
    assert CONTRADICTING not in chat_usage({**TOTALS, "cache_creation": ages})
    less = {**TOTALS, "cache_creation_input_tokens": 20, "cache_creation": ages}
    assert (read(less), CONTRADICTING in chat_usage(less)) == (found, True)
    thought = {"thinking_tokens": 5}
    for member, known, unknown in (
        ("cache_creation", ages, {"ephemeral_24h_input_tokens": 1}),
        ("output_tokens_details", thought, {"holo_tokens": 1}),
        ("iterations", [CALL], [{**CALL, "holo_tokens": 1}]),
        ("iterations", [CALL], [{**CALL, "output_tokens_details": {"holo_tokens": 1}}]),
        ("iterations", [CALL], [{**CALL, "cache_creation": {"ephemeral_24h": 1}}]),
    ):
        assert has_unread(chat_usage({**TOTALS, member: unknown})), unknown
        assert not has_unread(chat_usage({**TOTALS, member: known})), "control"

"""Records survive the journal's encoding, and what is not one is not taken for one."""

from typing import get_type_hints as get_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.journals.records import (
    AttemptOpened,
    AttemptSettled,
    ComparedCost,
    Hold,
    Record,
    RequestRefused,
    TokenCounts,
)

COUNTS = st.integers(0, 2**53)
MONEY = st.integers(0, 2**63 - 1)
TOKENS = st.builds(TokenCounts, *[COUNTS] * len(TokenCounts.__struct_fields__))
OF_TYPE = {"int": COUNTS, "int | None": st.none() | COUNTS}


def numbers(kind: type) -> dict[str, st.SearchStrategy]:
    """The number fields of a record: what the journal's encoding can hold."""
    hints = {name: str(getattr(hint, "__name__", hint)) for name, hint in get_hints(kind).items()}
    return {name: OF_TYPE[hint] for name, hint in hints.items() if hint in OF_TYPE}


RECORDS = st.one_of(
    st.builds(
        AttemptOpened,
        **numbers(AttemptOpened),
        holds=st.lists(st.builds(Hold, st.text(), COUNTS, MONEY)).map(tuple),
        tags=st.lists(st.tuples(st.text(), st.text())).map(tuple),
        decision=st.binary(max_size=800),
    ),
    st.builds(
        AttemptSettled,
        **{**numbers(AttemptSettled), "cost_pusd": st.none() | MONEY},
        tokens=TOKENS,
        compared=st.lists(st.builds(ComparedCost, st.text(), COUNTS, MONEY)).map(tuple),
    ),
    st.builds(RequestRefused, **numbers(RequestRefused)),
)


@given(RECORDS)
def test_a_record_comes_back_as_itself(record):
    data = msgspec.msgpack.encode(record)
    assert msgspec.msgpack.decode(data, type=Record) == record


def test_unpriced_is_not_free(settled):
    """`None` must survive beside defaults that are left out."""
    unpriced = msgspec.msgpack.encode(settled(1, cost_pusd=None))
    free = msgspec.msgpack.encode(settled(1, cost_pusd=0))
    assert msgspec.msgpack.decode(unpriced, type=Record).cost_pusd is None
    assert msgspec.msgpack.decode(free, type=Record).cost_pusd == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "unheard-of"},
        {"basis": "guessed"},
        {"status": "fine"},
        {"cost_pusd": 1.5},
        {"attempt_id": None},
    ],
)
def test_what_is_no_record_is_refused(settled, changes):
    document = {**msgspec.to_builtins(settled(1)), **changes}
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(document), type=Record)


def test_a_member_that_a_later_release_adds_is_refused_by_name(settled):
    """Passed over it would be lost: the journal would go, and with it what nobody read."""
    document = {**msgspec.to_builtins(settled(1)), "added_later": 7}
    data = msgspec.msgpack.encode(document)
    with pytest.raises(msgspec.ValidationError, match="added_later"):
        msgspec.msgpack.decode(data, type=Record)

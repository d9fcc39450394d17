"""A ledger and a journal of 2026-11-26 are read as they were read then, by their names.

Reasons, features, token kinds and the router's fields are stored by place. The control permutes
two neighbours of each table, and the same comparison fails for every pair.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from written_read import (
    BOOKS,
    BOOKS_READERS,
    LEDGER,
    SAID,
    difference,
    journal_frames,
    journal_records,
    read_decision,
    said_then,
    stored_decisions,
    unpacked,
)

from ledger.database import make_engine, migrate, schema_of, sqlite_url
from ledger.journals import payloads
from ledger.journals.payloads import encode_payload
from ledger.journals.records import AttemptOpened, AttemptSettled, RequestRefused, TokenCounts
from ledger.verify.checks import verify
from router import packed, snapshot_codec
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.types import Feature

# Members that came after this ledger was written: reasons, features, token kinds, fields. Nothing
# in it has one, so that its place cannot be found wrong here; `tests/tidy/test_places.py` and
# `STORED` of `tests/ledger/journals/test_token_kinds.py` hold it.
LATER = {"asks_to_think", "has_sound", "without_pictures", "service_tier", "spare_misses",
         "spare_brief_misses",
         "text_prompt", "searches_limit", "characters", "pictures", "cached_tokens",
         "cache_saves_pusd", "messages", "team", "spills", "spare", "prefillers", "is_apart",
         "is_spare", "content", "kept_for", "context_margin"}  # fmt: skip
BY_PLACE = (
    (packed, "_REASONS"),
    (packed, "_FEATURES"),
    (packed, "_REQUEST"),
    (packed, "_POLICY"),
    (packed, "_TERMS"),
    (packed, "_STATE"),
    (packed, "_OF_ENGINES"),
    (packed, "_OF_APIS"),
    (snapshot_codec, "_REQUEST"),
    (snapshot_codec, "_POLICY"),
    (snapshot_codec, "_CANDIDATE"),
    (snapshot_codec, "_ENGINE"),
    (snapshot_codec, "_API"),
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files, and an engine on the ledger after every migration since."""
    directory = unpacked(tmp_path_factory.mktemp("written"))
    url = sqlite_url(directory / LEDGER)
    made_at = schema_of(url)
    migrate(url)
    assert made_at == "0042"
    engine = make_engine(url)
    yield directory, engine
    engine.dispose()


@pytest.fixture(scope="module")
def then() -> dict[str, Any]:
    return said_then()


@pytest.fixture
def connection(written):
    with written[1].connect() as connection:
        yield connection


def test_the_files_are_small() -> None:
    assert BOOKS.stat().st_size + SAID.stat().st_size < 300_000


@pytest.mark.parametrize("part", BOOKS_READERS)
def test_the_books_say_what_they_said(connection, then, part: str) -> None:
    assert difference(then[part], BOOKS_READERS[part](connection)) is None


def test_the_books_hold(connection) -> None:
    assert verify(connection).findings == ()


def test_the_journal_says_what_it_said(written, then) -> None:
    assert difference(then["journal"], journal_records(written[0])) is None


def test_the_journal_is_written_as_it_was(written) -> None:
    """A later member of a list stands behind those of that day."""
    read = journal_frames(written[0])
    assert read
    for frame in read:
        now = encode_payload(frame.record)
        assert difference(_decoded(frame.raw), _decoded(now)) is None


def _decoded(raw: bytes) -> Any:
    document = msgspec.msgpack.decode(raw)
    if "tokens" in document:
        document["tokens"] = dict(enumerate(document["tokens"]))
    if "compared" in document:
        document["compared"] = [dict(enumerate(each)) for each in document["compared"]]
    return document


def test_every_word_of_that_day_is_in_the_files(then) -> None:
    rows, made = then["rows"], [each["decision"] for each in then["decisions"].values()]
    said = {
        "reasons": {each["reason"] for each in made},
        "features": {name for each in made for name in each["request"]["features"]},
        "kinds": {row["kind"] for row in rows["attempts"]},
        "scopes": {re.split("[:@]", row["budget_id"])[0] for row in rows["holds"]},
        "flags": {row["flag"] for row in rows["attempts"]} - {None},
        "bases": {row["basis"] for row in rows["attempts"]},
        "statuses": {row["status"] for row in rows["attempts"]},
        "records": {record["type"] for record in then["journal"]},
        "tokens": {name for record in then["journal"] if "tokens" in record
                   for name, count in record["tokens"].items() if count},
    }  # fmt: skip
    assert {name: len(words) for name, words in said.items()} == {
        "reasons": 31, "features": 9, "kinds": 5, "scopes": 9, "flags": 5, "bases": 4,
        "statuses": 6, "records": 3, "tokens": 10,
    }  # fmt: skip
    assert said["reasons"] <= set(Reason)
    assert said["features"] <= set(Feature)
    assert said["kinds"] <= set(RequestKind)
    assert len(rows["gpu_hours"]) >= 24


# ---------------------------------------------------------------- controls


@pytest.mark.parametrize(("module", "name"), BY_PLACE)
def test_two_neighbours_that_change_places_are_found(
    connection, then, monkeypatch, module, name
) -> None:
    stored, table = stored_decisions(connection), getattr(module, name)
    for place, pair in enumerate(pairwise(table)):
        if pair[1] in LATER:
            continue
        monkeypatch.setattr(module, name, _permuted(table, place))
        is_noticed = any(
            _reads_otherwise(
                then["decisions"][each], lambda each=each: read_decision(*stored[each])
            )
            for each in stored
        )
        assert is_noticed, later(*pair)


def later(before: str, after: str) -> str:
    """Say what to do about two members whose places could be exchanged unnoticed."""
    return (
        f"`{before}` and `{after}` can change places: nothing in the written ledger tells them "
        f"apart. If `{after}` came after the written ledger: add it to LATER"
    )


def test_a_member_that_is_not_in_the_written_ledger_is_named(connection, then, monkeypatch) -> None:
    monkeypatch.setattr(packed, "_REASONS", (*packed._REASONS, "new"))
    with pytest.raises(AssertionError, match=r"If `new` came after .*: add it to LATER"):
        test_two_neighbours_that_change_places_are_found(
            connection, then, monkeypatch, packed, "_REASONS"
        )


def _permuted(table: Sequence[Any], place: int) -> tuple[Any, ...]:
    before, after = table[place : place + 2]
    return (*table[:place], after, before, *table[place + 2 :])


def _reads_otherwise(then: Any, read: Callable[[], Any]) -> bool:
    """Or cannot be read at all."""
    try:
        return difference(then, read()) is not None
    except (ValueError, TypeError, AttributeError, LookupError):
        return True


_TOKEN_KINDS = TokenCounts.__struct_fields__


@pytest.mark.parametrize(
    "place", [place for place, name in enumerate(_TOKEN_KINDS[1:]) if name not in LATER]
)
def test_two_token_kinds_that_change_places_are_found(written, then, monkeypatch, place) -> None:
    names = _permuted(_TOKEN_KINDS, place)
    swapped = msgspec.defstruct("Tokens", [(name, int, 0) for name in names], array_like=True)
    fields = [
        (field.name, swapped if field.name == "tokens" else field.type, field.default)
        for field in msgspec.structs.fields(AttemptSettled)
    ]
    settled = msgspec.defstruct("AttemptSettled", fields, tag="settle", kw_only=True)
    decoder = msgspec.msgpack.Decoder(AttemptOpened | settled | RequestRefused)
    monkeypatch.setattr(payloads, "_DECODER", decoder)
    is_noticed = _reads_otherwise(then["journal"], lambda: journal_records(written[0]))
    assert is_noticed, later(*_TOKEN_KINDS[place : place + 2])

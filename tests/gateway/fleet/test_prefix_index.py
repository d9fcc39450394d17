"""Where a prompt's beginning was sent before: marks, tables, and two engines over HTTP."""

import json
import random
from bisect import bisect_right
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gateway.fleet.prefix_index import (
    ENDS,
    HOUR_S,
    LONGEST_BYTES,
    MINUTES_S,
    NOTHING,
    PIECE_BYTES,
    PIECE_TOKENS,
    SIZES,
    PrefixIndex,
    beginning_of,
    tokens_of,
)
from gateway.fleet.shared_load import SharedLoadTable
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody
from gateway.kinds.native_request import NativeRequest
from gateway.table_layout import EngineCell, TableLayout

ENGINES = ("pool:a/0", "pool:a/1")


def asked(path: str = "/v1/chat/completions", **members: object):
    text = json.dumps({"model": "m", **members}).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, max_n=8))


def chat(*contents: str, **members: object):
    messages = [{"role": "user", "content": content} for content in contents]
    return asked(messages=messages, **members)


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(tmp_path / "board", TableLayout(workers=1, engines=ENGINES, apis=()))
    for row in range(len(ENGINES)):
        board.publish(row, {EngineCell.KV_CAPACITY_TOKENS: 1000.0 * PIECE_TOKENS})
    yield board
    board.close()


@pytest.fixture
def prefixes(tmp_path: Path, board: SharedLoadTable):
    prefixes = PrefixIndex(tmp_path / "prefixes", board)
    yield prefixes
    prefixes.close()


def test_the_next_turn_begins_with_the_marks_of_this_one() -> None:
    first = beginning_of(chat("a" * 2000), None)
    second = beginning_of(chat("a" * 2000, "b" * 3000), None)
    assert len(first.marks) == 2031 // PIECE_BYTES == 7
    assert second.marks[:7] == first.marks
    assert len(second.marks) > 14
    changed = beginning_of(chat("a" * 1000 + "c" + "a" * 999), None)
    assert changed.marks[:4] == first.marks[:4]
    assert not set(changed.marks[4:]) & set(first.marks)


@pytest.mark.parametrize(
    "other",
    [
        beginning_of(chat("a" * 2000), "salt"),
        beginning_of(chat("a" * 2000, tools=[{"type": "function"}]), None),
        beginning_of(chat("b" + "a" * 1999), None),
    ],
    ids=["another tenant's", "with tools", "another text"],
)
def test_what_an_engine_would_not_share_has_no_mark_in_common(other) -> None:
    assert len(other.marks) == 7
    assert not set(other.marks) & set(beginning_of(chat("a" * 2000), None).marks)


def test_what_is_short_or_read_otherwise_has_no_beginning() -> None:
    assert beginning_of(chat("hi"), None) is NOTHING
    lists = asked("/v1/completions", prompt=["a" * 999, "a" * 999])
    assert beginning_of(lists, None) is NOTHING
    assert beginning_of(asked("/v1/embeddings", input="a" * 999), None) is NOTHING
    assert len(beginning_of(asked("/v1/completions", prompt="a" * 999), None).marks) == 3


def marked(**mark: str) -> list[dict]:
    part = {"type": "text", "text": "a" * 2000, "cache_control": {"type": "ephemeral", **mark}}
    return [{"role": "user", "content": [part]}]


def test_marks_say_for_how_long_a_provider_shall_keep_it() -> None:
    assert beginning_of(chat("a" * 2000), None).kept_s == 0
    assert beginning_of(chat('say "cache_control"' * 200), None).kept_s in {0, MINUTES_S}
    assert beginning_of(asked(messages=marked()), None).kept_s == MINUTES_S
    assert beginning_of(asked(messages=marked(ttl="1h")), None).kept_s == HOUR_S
    plain = chat("a" * 2000)
    native = NativeRequest({"cache_control": Raw(b'{"type": "ephemeral", "ttl": "1h"}')})
    assert beginning_of(replace(plain, native=native), None).kept_s == HOUR_S


def test_a_long_prompt_has_few_marks_and_its_share_of_the_tokens() -> None:
    assert ENDS[:3] == (256, 512, 768)
    assert ENDS[-2] < LONGEST_BYTES <= ENDS[-1]
    assert len(ENDS) < 130
    found = beginning_of(chat("a" * 3 * 10**6), None)
    assert len(found.marks) == len(ENDS)
    assert tokens_of(found, 0, 750_000) == 0
    assert tokens_of(found, len(ENDS), 750_000) == pytest.approx(
        750_000 * ENDS[-1] / 3e6, rel=0.001
    )
    tools = beginning_of(chat("a" * 2000, tools=[{"type": "x" * 2000}]), None)
    assert tokens_of(tools, 7, 1000) == pytest.approx(1000 * (2017 + 1792) / (2017 + 2032), abs=1)


def test_an_engine_has_what_it_was_sent_and_no_other(prefixes: PrefixIndex) -> None:
    marks = beginning_of(chat("a" * 2000), None).marks
    assert prefixes.count_known(0, marks) == 0
    prefixes.record_sent(0, marks, 1.0)
    assert (prefixes.count_known(0, marks), prefixes.count_known(1, marks)) == (7, 0)
    longer = beginning_of(chat("a" * 2000, "b" * 2000), None).marks
    assert prefixes.count_known(0, longer) == 7


def test_workers_of_a_host_share_the_tables(tmp_path: Path, prefixes: PrefixIndex, board) -> None:
    marks = beginning_of(chat("a" * 2000), None).marks
    prefixes.record_sent(1, marks, 1.0)
    other = PrefixIndex(tmp_path / "prefixes", board)
    assert other.count_known(1, marks) == 7
    other.close()


def test_another_life_of_the_engine_has_nothing(
    prefixes: PrefixIndex, board: SharedLoadTable
) -> None:
    marks = beginning_of(chat("a" * 2000), None).marks
    prefixes.record_sent(0, marks, 1.0)
    board.publish_stage(0, "serving", life=1)
    assert prefixes.count_known(0, marks) == 0


def test_a_cache_that_is_full_of_others_has_forgotten(
    prefixes: PrefixIndex, board: SharedLoadTable
) -> None:
    """Ten times what the cache holds, and next to nothing of before is left."""
    mine = beginning_of(chat("a" * 2000), None).marks
    prefixes.record_sent(0, mine, 1.0)
    for place in range(1400):
        prefixes.record_sent(0, beginning_of(chat(f"{place} " * 400), None).marks[:7], 1.0)
    assert prefixes.count_known(0, mine) == 0
    board.publish(0, {EngineCell.KV_CAPACITY_TOKENS: 0.0})  # nothing is known of it
    prefixes.record_sent(0, mine, 1.0)
    assert prefixes.count_known(0, mine) == 0


def test_a_beginning_that_comes_again_is_known_whole_though_the_table_is_full(prefixes) -> None:
    """24 beginnings in turn, as many marks as places: chance takes some of each one's places."""
    rng = random.Random(1)
    beginnings = [[rng.getrandbits(32) for _ in range(40)] for _ in range(24)]
    for _ in range(3):
        for marks in beginnings:
            prefixes.record_sent(0, marks, 1.0)
    known = [prefixes.count_known(0, marks) for marks in beginnings]
    assert sum(known) > 0.85 * 24 * 40
    more = [rng.getrandbits(32) for _ in range(40)]
    assert prefixes.count_known(0, [*beginnings[-1], *more]) == 40
    assert prefixes.count_known(0, more) == 0


def test_what_was_sent_before_the_engine_forgot_is_not_there(prefixes, board) -> None:
    """What was sent since is; the control is the first line, before it told anything."""
    old, new = (beginning_of(chat(letter * 2000), None).marks for letter in "ad")
    prefixes.record_sent(0, old, 100.0)
    prefixes.record_sent(0, new, 200.0)
    prefixes.record_sent(1, old, 100.0)
    assert (prefixes.count_known(0, old), prefixes.count_known(0, new)) == (7, 7)
    board.publish(0, {EngineCell.FORGOTTEN_S: 150.0})
    assert (prefixes.count_known(0, old), prefixes.count_known(0, new)) == (0, 7)
    assert prefixes.count_known(1, old) == 7, "another engine's cache is another one"
    prefixes.record_sent(0, old, 151.0)
    assert prefixes.count_known(0, old) == 7, "sent again, it is there again"


def test_a_full_cache_drops_whom_it_released_long_ago(prefixes, board) -> None:
    """Not whom it was sent long ago; before it is full it drops nobody, so nothing is noted."""
    long, other = (beginning_of(chat(letter * 2000), None).marks for letter in "ad")
    prefixes.record_sent(0, long, 100.0)
    prefixes.record_sent(0, other, 110.0)
    prefixes.record_released(0, long, 130.0)
    board.publish(0, {EngineCell.FORGOTTEN_S: 105.0})
    assert prefixes.count_known(0, long) == 0, "the control: it was not full yet"
    prefixes.record_released(0, long, 130.0)
    board.publish(0, {EngineCell.FORGOTTEN_S: 120.0})
    assert prefixes.count_known(0, long) == 7
    assert prefixes.count_known(0, other) == 0
    prefixes.record_released(1, long, 130.0)
    assert prefixes.count_known(1, long) == 0, "what was never sent there is not there"


def test_what_was_sent_before_as_much_as_the_cache_holds_is_reckoned_as_gone(
    prefixes: PrefixIndex, board: SharedLoadTable
) -> None:
    """Long prompts in turn, of which the cache holds some: the ones sent last are left."""
    capacity = int(board.published(0)[EngineCell.KV_CAPACITY_TOKENS])
    pieces = bisect_right(ENDS, 4 * capacity // 10)
    tokens = sum(SIZES[:pieces])
    rng = random.Random(1)
    beginnings = [[rng.getrandbits(32) for _ in range(pieces)] for _ in range(30)]
    for turn in range(3):  # the same few again and again take no room twice
        for place in range(5):
            prefixes.record_sent(0, beginnings[place], 10.0 * turn + place + 1.0)
    assert prefixes.forgotten_s(0) == 0.0
    for place, marks in enumerate(beginnings):
        prefixes.record_sent(0, marks, 100.0 + place)
    kept = 130.0 - prefixes.forgotten_s(0)
    assert kept == pytest.approx(capacity / tokens, abs=1.5)
    board.publish(0, {EngineCell.FORGOTTEN_S: prefixes.forgotten_s(0)})
    assert prefixes.count_known(0, beginnings[-2]) == pieces
    assert prefixes.count_known(0, beginnings[-15]) == 0
    assert prefixes.forgotten_s(1) == 0.0, "another engine was sent nothing"


def test_short_pieces_that_fill_the_table_are_reckoned_as_those_that_fell_together(
    prefixes: PrefixIndex, board: SharedLoadTable
) -> None:
    capacity = int(board.published(0)[EngineCell.KV_CAPACITY_TOKENS])
    rng = random.Random(2)
    for number in range(2 * capacity // SIZES[0]):
        prefixes.record_sent(0, [rng.getrandbits(32)], 1.0 + number * SIZES[0] / capacity)
    assert prefixes.forgotten_s(0) == pytest.approx(2.0, abs=0.15)


def test_a_prompt_goes_where_its_beginning_is_though_it_is_busier(make_host, patiently) -> None:
    """The control: another prompt goes to the engine that has nothing to do."""
    host = make_host()
    host.start()

    def ask(text: str, **members: object) -> str:
        answer = host.ask(messages=[{"role": "user", "content": text}], **members)
        return answer.headers["x-breakeven-backend"]

    known = "A long beginning, the same for all. " * 400

    def trusted() -> bool:
        ask(known + "What follows?", max_tokens=1)
        return host.metric("breakeven_engine_prefix_trust") > 0.9

    patiently(trusted)
    where = ask(known, max_tokens=1)
    body = {"model": "own", "stream": True, "max_tokens": 20_000, "ignore_eos": True,
            "messages": [{"role": "user", "content": "Go on."}]}  # fmt: skip
    url, headers = f"{host.url}/v1/chat/completions", {"authorization": f"Bearer {host.token}"}
    with host.client.stream("POST", url, json=body, headers=headers) as stream:
        chunks = stream.iter_raw()  # whoever lets go of it hangs up
        next(chunks)
        assert stream.headers["x-breakeven-backend"] == where
        assert ask("Another text of that length. " * 400, max_tokens=1) != where
        assert ask(known + "And then?", max_tokens=1) == where
        patiently(lambda: host.metric("breakeven_engine_running") == 1.0)  # as of the last look
        chunks.close()
    assert host.metric("breakeven_engine_prefix_expected_tokens_total") > 3000

"""A request is read whole, a further turn from its news on, and masked with its true size."""

import asyncio
import json
import time

import pytest

from gateway.config.schema_content import ContentSection
from gateway.content.masking import Placeholders
from gateway.content.reader_set import ReaderSet
from gateway.errors import RequestError
from gateway.http.body import decode_members, encode
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody
from router.content import content_terms

CARD = "4111 1111 1111 1111"
KINDS = ("card", "email", "secret")


@pytest.fixture
async def reader():
    return await ReaderSet(ContentSection()).reader(content_terms(dict.fromkeys(KINDS, "mask")))


def asked(path: str = "/v1/chat/completions", **body):
    text = json.dumps({"model": "m", **body}).encode()
    return KIND_PATHS[path].read(IncomingBody(text, "application/json", None, 8))


def chat(*said: str):
    roles = ("user", "assistant")
    return asked(messages=[
        {"role": roles[number % 2], "content": text} for number, text in enumerate(said)
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        (chat(f"{CARD}, a@b.com"), {"card": 1, "email": 1}),
        (chat("4111 1111", "ok", "1111 1111"), {"card": 1}),
        (asked("/v1/completions", prompt=CARD), {"card": 1}),
        (asked("/v1/completions", prompt=[1, 2, 3]), {"unknown": 1}),
        (asked("/v1/embeddings", input=["x", CARD]), {"card": 1}),
        (asked(messages=[{"role": "user", "content": "hi"}], user=f"me {CARD}"), {"card": 1}),
        (asked(messages=[{"role": "user", "content": "hi"}], metadata={CARD: "x"}), {"card": 1}),
        (chat("nothing"), {}),
    ],
)  # fmt: skip
async def test_each_part_is_read(reader, request_, found) -> None:
    assert await reader.read(request_) == found


async def test_a_further_turn_reads_what_is_new_alone(reader, monkeypatch) -> None:
    said = [f"turn {number} " + "word " * 400 for number in range(9)]
    said[2] += CARD
    assert await reader.read(chat(*said)) == {"card": 1}
    scanned = []
    scan = reader._scanner.scan
    monkeypatch.setattr(reader._scanner, "scan", lambda texts: scanned.extend(texts) or scan(texts))
    assert await reader.read(chat(*said, "and a@b.com", "so?")) == {"card": 1, "email": 1}
    assert sum(map(len, scanned)) < 2000
    assert await reader.read(chat(*said, "and a@b.com", "so?", "4111 11")) == {
        "card": 1, "email": 1,
    }  # fmt: skip


async def test_what_goes_on_in_the_next_turn_is_found(reader) -> None:
    long = "word " * 600
    before = [long, "ok", "my card is 4111 1111"]
    assert await reader.read(chat(*before)) == {}
    assert await reader.read(chat(*before, "go on", "1111 1111")) == {"card": 1}


@pytest.mark.parametrize(("said", "kind"), [
    (("5555 3412...", "Saved. What follows?", "...4444 1115"), "card"),
    (("5555", "noted", "3412", "noted", "4444", "and the last?", "1115"), "card"),
    (("5555", "noted", "3412", "noted", "4444", "and the last?", "1116"), None),
    (("AKIAZ4NMFH", "more?", "ADQHKPMZZ2"), "secret"),
])  # fmt: skip
async def test_pieces_of_a_number_in_short_messages_are_one(reader, said, kind) -> None:
    assert await reader.read(chat(*said)) == ({kind: 1} if kind else {})


async def test_pieces_in_calls_of_different_tools_are_one(reader) -> None:
    calls = [
        {"id": str(number), "type": "function",
         "function": {"name": name, "arguments": json.dumps({name: piece})}}
        for number, (name, piece) in enumerate((("head", "55553412"), ("tail", "44441115")))
    ]  # fmt: skip
    messages = [
        {"role": "user", "content": "store it"},
        {"role": "assistant", "content": None, "tool_calls": calls[:1]},
        {"role": "tool", "tool_call_id": "0", "content": "ok"},
        {"role": "assistant", "content": None, "tool_calls": calls[1:]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
    ]
    assert await reader.read(asked(messages=messages)) == {"card": 1}


async def test_a_masked_request_has_the_size_of_what_is_sent(reader) -> None:
    request = chat(f"{CARD} and {CARD} and a@b.com")
    masked = await reader.mask(request, KINDS, Placeholders())
    sent = json.loads(bytes(masked.members["messages"]))[0]["content"]
    assert sent == "[card-1] and [card-1] and [email-1]"
    again = {"model": "m", "messages": [{"role": "user", "content": sent}]}
    text = json.dumps(again, separators=(",", ":")).encode()
    fresh = KIND_PATHS["/v1/chat/completions"].read(IncomingBody(text, "json", None, 8))
    assert masked.prompt_bytes == fresh.prompt_bytes < request.prompt_bytes
    assert await reader.mask(chat("nothing"), KINDS, Placeholders()) == chat("nothing")


async def test_texts_of_a_guardrail_take_their_places(reader) -> None:
    request = chat("one", "two")
    assert {"one", "two"} <= set(reader.texts_of(request))
    made = reader.with_texts(request, {"one": "ONE"})
    assert decode_members(b'{"m":%b}' % bytes(made.members["messages"]))
    assert b"ONE" in bytes(made.members["messages"])


async def test_what_stands_under_a_name_twice_is_not_sent_unread(reader) -> None:
    twice = b'{"role": "user", "content": "4111111111111111", "content": "x"}'
    text = b'{"model": "m", "messages": [%b]}' % twice
    request = KIND_PATHS["/v1/chat/completions"].read(IncomingBody(text, "json", None, 8))
    with pytest.raises(RequestError, match="stands twice"):
        await reader.read(request)


@pytest.mark.parametrize("content", [[{"type": "text", "text": "a@b.co "}] * 6_000,
                                     "a@b.co " * 30_000], ids=["parts", "one text"])  # fmt: skip
async def test_a_body_of_many_finds_leaves_turns_to_others(reader, content) -> None:
    work = asyncio.create_task(reader.read(asked(messages=[{"role": "user", "content": content}])))
    longest_s = 0.0
    while not work.done():
        began_s = time.process_time()
        await asyncio.sleep(0)
        longest_s = max(longest_s, time.process_time() - began_s)
    assert await work == {"email": 6_000 if isinstance(content, list) else 30_000}
    assert longest_s < 1.0, "each find was compared with each other one"


@pytest.mark.parametrize("name", ["service_tier", "top_p", "encoding_format", "seed"])
async def test_words_in_the_place_of_a_number_are_read(reader, name) -> None:
    for value in (CARD, [CARD], {"note": CARD}):
        said = {**json.loads(chat_body("hi")), name: value}
        assert await reader.read(asked(**said)) == {"card": 1}
        masked = await reader.mask(asked(**said), ["card"], Placeholders())
        assert b"4111" not in encode(masked.members)
    plain = {**json.loads(chat_body("hi")), "seed": 4111111111111111, "service_tier": "default"}
    assert await reader.read(asked(**plain)) == {}


def chat_body(text: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}]})


PASSWORD = "Tr0ub4dor&3xYz9"


@pytest.mark.parametrize(
    "said",
    [
        {"messages": [{"role": "user", "content": json.dumps({"password": PASSWORD})}]},
        {"messages": [{"role": "user", "content": json.dumps([{"db": {"api_key": PASSWORD}}])}]},
        {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [
            {"id": "c", "type": "function", "function": {
                "name": "f", "arguments": json.dumps({"n": 1, "password": PASSWORD})}}]},
            {"role": "tool", "tool_call_id": "c", "content": "done"}]},
        {"messages": [{"role": "user", "content": "x"}], "metadata": {"password": PASSWORD}},
    ],
)  # fmt: skip
async def test_a_value_is_read_under_its_name(said) -> None:
    terms = content_terms({"random_secret": "mask"})
    reader = await ReaderSet(ContentSection()).reader(terms)
    assert await reader.read(asked(**said)) == {"random_secret": 1}
    masked = await reader.mask(asked(**said), ["random_secret"], Placeholders())
    assert PASSWORD.encode() not in encode(masked.members)
    assert await reader.read(masked) == {}


async def test_an_own_pattern_holds_over_a_name_and_its_value() -> None:
    section = ContentSection(patterns={"staff": r"employee_id\W{1,4}[0-9]{7}"})
    reader = await ReaderSet(section).reader(content_terms({"staff": "mask"}))
    for content in ('see {"employee_id": 1234567}', '{"employee_id": 1234567}',
                    '{"employee_id": "1234567"}'):  # fmt: skip
        said = asked(messages=[{"role": "user", "content": content}])
        assert await reader.read(said) == {"staff": 1}, content
        masked = await reader.mask(said, ["staff"], Placeholders())
        assert b"1234567" not in encode(masked.members)


async def test_an_own_pattern_is_found_in_a_small_number() -> None:
    section = ContentSection(patterns={"badge": r"\b[0-9]{5}\b"})
    reader = await ReaderSet(section).reader(content_terms({"badge": "mask"}))
    for content in ('{"badge": 12345}', '[1, {"who": [54321]}]', '{"n": 7, "big": 100}'):
        said = asked(messages=[{"role": "user", "content": content}], seed=12345)
        assert await reader.read(said) == ({"badge": 1} if "big" not in content else {}), content
        masked = await reader.mask(said, ["badge"], Placeholders())
        assert b"12345" not in bytes(masked.members["messages"])
        assert b"54321" not in bytes(masked.members["messages"])
    tokens = asked("/v1/completions", prompt=[12345, 54321])
    assert await reader.read(tokens) == {"unknown": 1}

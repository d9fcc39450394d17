"""Requests made to hurt: refused in no time, or stripped; nothing of it reaches a target."""

import json
import random
import re

import httpx
import pytest

from gateway.http.member_rules import DENIED
from gateway.request import request_parser

CHAT = "/v1/chat/completions"
ASK = {"model": "own", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
DEEP = 100_000
HANGS_S = 60.0  # what a body costs is counted in `test_blocking` and `test_amplification`


def bombs() -> list[bytes]:
    """Bodies that are hard to read, by shape and size; seeded, so that each run sends the same."""
    rng = random.Random(4)
    whole = json.dumps(ASK).encode()
    shapes = [
        b"[" * DEEP, b'{"a":' * DEEP, b'{"messages":' + b"[" * DEEP,
        b'{"model":"own","messages":[{',
        b'{"messages":[],"messages":[]}', b"{" + b'"a":1,' * 50_000 + b'"b":1}',
        b'{"max_tokens":' + b"9" * 5000 + b"}", b'{"n":1e400}', b'{"model":NaN}', b'{"model":-}',
        b'{"model":"\\ud800"}', b'{"model":"\xed\xa0\x80"}', b'{"model":"own\x00"}',
        b"\xef\xbb\xbf{}",
        b'{"messages":[' + b'{"role":"user","content":"x"},' * 1000 + b"]}", b"", b"\x00" * 100,
        b'"' + b"\\" * 9999, b'{"model":{"a":[1]}}', b'{"model":[]}', b'{"stream":"yes"}',
    ]  # fmt: skip
    cut = [whole[: rng.randrange(1, len(whole))] for _ in range(60)]
    turned = []
    for _ in range(120):
        place = rng.randrange(len(whole))
        turned.append(whole[:place] + bytes([rng.randrange(256)]) + whole[place + 1 :])
    return [*shapes, *cut, *turned]


def test_no_body_is_a_crash_or_a_hang(faulty) -> None:
    url, headers = faulty.stack.url + CHAT, faulty.stack.headers()
    headers["content-type"] = "application/json"
    with httpx.Client(trust_env=False, timeout=HANGS_S) as client:
        for body in bombs():
            answer = client.post(url, content=body, headers=headers)
            assert answer.status_code in (200, 400, 404, 413), body[:100]
            if answer.status_code != 200:
                assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.fixture
def recorded(faulty, monkeypatch):
    """Every body that is sent to a target."""
    sent = []
    usual = request_parser.body_for

    def recording(*given, **named):
        sent.append(usual(*given, **named))
        return sent[-1]

    monkeypatch.setattr("gateway.request.request_parser.body_for", recording)
    return sent


def test_what_is_denied_reaches_no_target_and_is_named(faulty, recorded) -> None:
    answered = 0
    for name in sorted(DENIED):
        for value in ({"tokenize": True}, "http://127.0.0.1:1", 10**9, ["x"]):
            answer = faulty.stack.chat("own", **{name: value}, max_tokens=2)
            if answer.status_code == 200:
                answered += 1
                assert answer.headers["x-breakeven-ignored"] == name
            else:
                assert answer.status_code == 400
                assert answer.json()["error"]["param"].startswith(name)
    assert 0 < len(recorded) == answered < 4 * len(DENIED)
    for body in recorded:
        named = DENIED & set(json.loads(body)) - {"cache_salt"}  # that one is ours
        assert named == set()
    salts = {json.loads(body)["cache_salt"] for body in recorded}
    assert len(salts) == 1


@pytest.mark.parametrize(
    "members",
    [
        {"n": 10**9},
        {"n": 9},
        {"max_tokens": 10**12},
        {"n": 0},
        {"logprobs": True, "top_logprobs": 10**6},
        {"guided_regex": "(a{1,99999}){1,99999}"},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"schema": {"pattern": "a{9999}"}},
            }
        },
        {
            "tools": [
                {"type": "function", "function": {"name": "x", "parameters": {"a": 70 * [0]}}}
            ]
            * 9000
        },
        {"use_beam_search": True, "n": 8},
        {"stop": ["x"] * 10_000},
        {"stop_regex": "(a|aa)+$"},
        {"bad_words": ["x"] * 10_000},
        {"logit_bias": {str(token): -100 for token in range(100_000)}},
        {"allowed_token_ids": [1] * 100_000},
        {"repetition_detection": {"max_pattern_size": 10**6, "min_count": 2}},
        {"web_search_options": {"search_context_size": "high"}},
        {"n_predict": -1},
    ],
)
def test_too_much_is_refused_before_any_target(faulty, recorded, members) -> None:
    assert faulty.stack.chat("own", **members).status_code == 400
    assert recorded == []


@pytest.mark.parametrize("model", ["own", "api"])
@pytest.mark.parametrize("url", ["http://169.254.169.254/", "file:///etc/passwd", "//x"])
def test_nothing_inside_fetches_for_a_client(faulty, recorded, model, url) -> None:
    """Neither an engine nor an API at a private address, as here. Data that came along may."""
    assert picture(faulty, model, url).status_code == 400
    assert recorded == []
    if model == "api":
        assert picture(faulty, model, "data:image/png;base64,AA==").status_code == 200


def test_an_embedding_brings_no_conversation_along(faulty, recorded) -> None:
    """vLLM would read that in place of the input, and fetch its pictures."""
    parts = [{"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}]
    body = {"model": "own", "input": "x", "messages": [{"role": "user", "content": parts}]}
    answer = faulty.stack.post("/v1/embeddings", body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "messages")
    assert recorded == []


def picture(faulty, model, url):
    content = [{"type": "image_url", "image_url": {"url": url}}]
    return faulty.stack.chat(model, messages=[{"role": "user", "content": content}], max_tokens=2)


def test_without_a_look_at_addresses_it_would(faulty, recorded, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr("gateway.kinds.text_members._ADDRESS", re.compile(rb"\0"))
    assert picture(faulty, "api", "http://169.254.169.254/").status_code == 200
    assert b"169.254.169.254" in recorded[0]


def test_without_the_denied_list_all_of_it_would_go_through(faulty, recorded, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr("gateway.http.member_rules.MemberRules.drop_denied", lambda *_: ())
    faulty.stack.chat("own", chat_template="x", max_tokens=2)
    assert "chat_template" in json.loads(recorded[0])

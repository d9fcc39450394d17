"""An answer leaves as guardrails allow it: whole, rewritten, or not at all."""

import json

import pytest

from gateway.content.guardrail_hook import HookAnswer, HookFailure
from gateway.request.answer_guard import HELD_BYTES, AnswerGuard

WHOLE = {"choices": [{"message": {"role": "assistant", "content": "call me"}}]}
STREAM = (
    b"".join(
        b"data: " + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + b"\n\n"
        for word in ("ca", "ll ", "me")
    )
    + b"data: [DONE]\n\n"
)


class Guardrail:
    name = "house"

    def __init__(self, says) -> None:
        self.says, self.heard = says, []

    async def ask(self, texts, _request_id, _model) -> HookAnswer:
        self.heard.append(list(texts))
        if isinstance(self.says, Exception):
            raise self.says
        return self.says(texts)


async def answered(says, actions, body: bytes, status: int = 200, media: bytes | None = None):
    sent, counted, guardrail = [], [], Guardrail(says)

    async def send(message) -> None:
        sent.append(message)

    guard = AnswerGuard(
        send, [(guardrail, actions)], "r1", "m", lambda *found: counted.append(found)
    )
    headers = [(b"content-length", b"1")]
    headers += [] if media is None else [(b"content-type", media)]
    await guard.send({"type": "http.response.start", "status": status, "headers": headers})
    half = len(body) // 2
    await guard.send({"type": "http.response.body", "body": body[:half], "more_body": True})
    assert sent == [], "something left before it was read"
    await guard.send({"type": "http.response.body", "body": body[half:]})
    start, end = sent
    assert dict(start["headers"])[b"content-length"] == str(len(end["body"])).encode()
    return start["status"], end["body"], guardrail, counted


def found(_texts) -> HookAnswer:
    return HookAnswer({"person": 1})


def rewritten(texts) -> HookAnswer:
    return HookAnswer({"person": 1}, [text.replace("me", "[person-1]") for text in texts])


@pytest.mark.parametrize("body", [json.dumps(WHOLE).encode(), STREAM], ids=["whole", "stream"])
async def test_a_clean_answer_leaves_as_it_is(body) -> None:
    status, sent, guardrail, counted = await answered(lambda _: HookAnswer(), ["refuse"], body)
    assert (status, sent, counted) == (200, body, [])
    assert "call me" in guardrail.heard[0]


@pytest.mark.parametrize("body", [json.dumps(WHOLE).encode(), STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("says", [found, HookFailure("late")], ids=["found", "failed"])
async def test_what_is_refused_or_not_told_is_withheld(body, says) -> None:
    status, sent, _, counted = await answered(says, ["refuse"], body)
    assert status == 400
    assert json.loads(sent)["error"]["code"] == "content_refused"
    assert b"call me" not in sent
    assert counted


async def test_an_answer_in_one_piece_is_rewritten_and_a_stream_is_not() -> None:
    _, sent, _, _ = await answered(rewritten, ["mask"], json.dumps(WHOLE).encode())
    assert json.loads(sent)["choices"][0]["message"]["content"] == "call [person-1]"
    status, _, _, _ = await answered(rewritten, ["mask"], STREAM)
    assert status == 400


async def test_recorded_finds_change_nothing_and_errors_pass() -> None:
    body = json.dumps(WHOLE).encode()
    assert (await answered(found, ["record"], body))[1] == body
    assert (await answered(found, ["refuse"], b"{}", status=503))[0] == 503


async def test_more_than_is_held_is_withheld() -> None:
    status, sent, _, _ = await answered(lambda _: HookAnswer(), ["refuse"], b"x" * (HELD_BYTES + 2))
    assert (status, b"too large" in sent) == (400, True)


def events(*chunks: dict) -> bytes:
    said = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    return b": keep-alive\n\n" + said + b"data: [DONE]\n\n"


def chunk(content: str, index: int = 0) -> dict:
    choice = {"index": index, "delta": {"content": content}, "finish_reason": None}
    told = {"created": 1700000000, "system_fingerprint": "fp_1", "service_tier": "default"}
    return {"id": "x", "object": "chat.completion.chunk", **told, "choices": [choice]}


async def test_an_answer_that_speaks_of_data_is_read_as_any_other() -> None:
    whole = {"choices": [{"message": {"content": "data: call me\n\ndata: [DONE]"}}]}
    status, sent, guardrail, _ = await answered(found, ["refuse"], json.dumps(whole).encode())
    assert status == 400
    assert b"call me" not in sent
    assert "data: call me\n\ndata: [DONE]" in guardrail.heard[0]


async def test_what_an_api_tells_beside_each_word_stands_not_between_them() -> None:
    _, _, guardrail, _ = await answered(found, ["refuse"], events(chunk("ca"), chunk("ll me")))
    assert "call me" in guardrail.heard[0]


async def test_answers_that_are_told_at_once_are_read_apart() -> None:
    body = events(chunk("ca"), chunk("no", 1), chunk("ll me"), chunk("pe", 1))
    _, _, guardrail, _ = await answered(found, ["refuse"], body)
    assert {"call me", "nope"} <= set(guardrail.heard[0])
    body = events(
        {"type": "content_block_delta", "index": 0, "delta": {"text": "ca"}},
        {"type": "content_block_delta", "index": 1, "delta": {"text": "no"}},
        {"type": "content_block_delta", "index": 0, "delta": {"text": "ll me"}},
    )
    _, _, guardrail, _ = await answered(found, ["refuse"], body)
    assert "call me" in guardrail.heard[0]


async def test_what_is_no_stream_and_no_document_is_withheld() -> None:
    for body in (b"data: {}\ncall me", b"call me data: {}", b"data: call me\n\n"):
        status, sent, _, _ = await answered(lambda _: HookAnswer(), ["refuse"], body)
        assert status == 400
        assert b"call me" not in sent


@pytest.mark.parametrize("media", [b"application/json", None])
async def test_words_that_look_like_a_stream_s_are_read_in_an_answer_in_one_piece(media) -> None:
    """`data:` at the beginning of an answer had it taken for a stream of nothing, and let go."""
    said = {"choices": [{"message": {"role": "assistant", "content": "data: call me"}}]}
    status, sent, guardrail, _ = await answered(
        found, ["refuse"], json.dumps(said).encode(), media=media
    )
    assert "data: call me" in guardrail.heard[0]
    assert (status, b"call me" in sent) == (400, False)


@pytest.mark.parametrize("body", [b"event: call me", b"1\n00:00 --> 00:01\ndata: call me\n"])
async def test_plain_text_is_no_stream_and_is_withheld(body) -> None:
    status, sent, guardrail, _ = await answered(
        lambda _: HookAnswer(), ["refuse"], body, media=b"text/plain; charset=utf-8"
    )
    assert (status, b"call me" in sent, guardrail.heard) == (400, False, [])


async def test_a_stream_is_known_by_its_type() -> None:
    body = b": keep-alive\n\n" + STREAM
    for media in (b"text/event-stream; charset=utf-8", None):
        status, sent, guardrail, _ = await answered(
            lambda _: HookAnswer(), ["refuse"], body, media=media
        )
        assert (status, sent, guardrail.heard) == (200, body, [["call me"]])

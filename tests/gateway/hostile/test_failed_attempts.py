"""Attempts that fail, or are left, after bytes were sent: each is booked at what it is billed."""

import base64
import io
import wave

import pytest
from billing_provider import honest
from hostile_scripts import (
    WHOLE,
    breaks_before_head,
    breaks_media,
    breaks_stream,
    breaks_whole,
    counted_error,
    error_event,
    filtered,
    lies_then_breaks,
    makes_media,
    own_deadline,
    searches,
    silent,
)

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
ROW = {"model": "row", "messages": [{"role": "user", "content": "hello there"}], "max_tokens": 50}
FAILS = {
    "a broken answer": breaks_whole,
    "a broken stream": breaks_stream,
    "no head": breaks_before_head,
    "a lie": lies_then_breaks,
    "an error event": error_event,
    "its own deadline": own_deadline,
    **{f"a counted {status}": counted_error(status) for status in (429, 500, 503)},
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fails", FAILS)
def test_each_attempt_is_booked_at_its_own_bill(hostile, fails, stream) -> None:
    """The first lies or fails, the second is honest. Counted statuses: red before."""
    team = f"row {fails} {stream}"
    hostile.play("any", FAILS[fails], honest)
    answer = hostile.post(team, CHAT, {**ROW, "stream": stream})
    rows = hostile.judged(team)
    if answer.status_code == 200 and len(rows) == 2:
        assert rows[-1]["cost_pusd"] == hostile.bills(team)[-1]
    if "counted" in fails:
        assert [row["cost_pusd"] for row in rows] == hostile.bills(team)
        assert [row["status"] for row in rows] == ["upstream_error", "finished"]


def test_three_attempts_hold_one_after_the_other(hostile) -> None:
    """A team with room for one and a half bounds gets its answer from the third."""
    hostile.play("any", counted_error(503), counted_error(500), honest)
    team = "tight-first"
    assert hostile.post(team, CHAT, {**ROW, "max_tokens": 50}).status_code == 200
    rows = hostile.judged(team, 0.005)
    assert [row["cost_pusd"] for row in rows] == hostile.bills(team)
    assert len(rows) == 3


@pytest.mark.parametrize("fails", [filtered, counted_error(400), counted_error(404)])
def test_a_refusal_is_booked_at_what_was_read(hostile, fails) -> None:
    """Red before: the client's own fault was free. A refused prompt is booked by its estimate."""
    team = f"refused {id(fails)}"
    hostile.play("any", fails)
    answer = hostile.post(team, CHAT, {**ROW, "model": "first"})
    (row,) = hostile.judged(team)
    assert (answer.status_code, row["http_status"]) in ((400, 400), (502, 404))
    assert row["cost_pusd"] > 0


def test_a_refusal_that_counts_nothing_is_free(hostile) -> None:
    async def refuses(call) -> None:
        call.answer({"error": {"message": "bad", "code": "invalid_value"}}, 400)

    hostile.play("any", refuses)
    assert hostile.post("free", CHAT, {**ROW, "model": "first"}).status_code == 400
    assert [row["cost_pusd"] for row in hostile.judged("free")] == [0]


TEXT = "word " * 40
MEDIA = {
    "speaks": ("/v1/audio/speech", {"input": TEXT, "voice": "a"}, 15_000_000 * len(TEXT)),
    "draws": ("/v1/images/generations", {"prompt": "a cat", "n": 2}, 80_000_000_000),
    "transcribes": ("/v1/audio/transcriptions", {}, 200_000_000),
}


def sound(seconds: int) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 8000 * seconds)
    return data.getvalue()


@pytest.mark.parametrize("media", [WHOLE, "audio/mpeg"])
@pytest.mark.parametrize("kind", MEDIA)
def test_a_file_or_picture_that_broke_off_is_paid_for(hostile, kind, media) -> None:
    path, body, pusd = MEDIA[kind]
    stack, team = hostile.stack, f"{kind} {media}"
    hostile.play("any", breaks_media(pusd, media), makes_media(kind, pusd))
    if body:
        hostile.post(team, path, {"model": kind, **body})
    else:
        file, headers = {"file": ("a.wav", sound(2))}, stack.headers(hostile.token(team))
        stack.client.post(stack.url + path, data={"model": kind}, files=file, headers=headers)
    assert min(hostile.bills(team)) == pusd
    hostile.judged(team)


TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
SEARCH = {"max_tokens": 50, "messages": [{"role": "user", "content": "news?"}], "stream": True}


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
@pytest.mark.parametrize("model", ["claude", "claudestops"])
def test_searches_of_an_answer_that_is_left_are_booked_as_billed(hostile, model, path) -> None:
    """Red before at a provider that stops: $0.0394 were billed and $0.0004 booked."""
    team = f"left {model} {path}"
    hostile.play(model, searches(stops=model == "claudestops", ends=True, pause_s=0.02))
    asked = {"tools": [TOOL]} if path == MESSAGES else {"web_search_options": {}}
    connection, _ = hostile.begin(team, path, {**SEARCH, **asked, "model": model})
    connection.close()
    (row,) = hostile.judged(team)
    assert (row["status"], row["basis"]) == ("client_gone", "reported")
    assert [row["cost_pusd"]] == hostile.bills(team)


@pytest.mark.parametrize("model", ["claude", "claudestops"])
def test_what_broke_off_while_it_searched_is_booked_at_its_hold(hostile, model) -> None:
    """Red before: nobody knew of searches that no usage told of."""
    team = f"dropped {model}"
    hostile.play(model, searches(stops=False, ends=False))
    hostile.post(team, MESSAGES, {**SEARCH, "tools": [TOOL], "model": model})
    (row,) = hostile.judged(team)
    assert (row["basis"], row["flag"]) == ("bound", "unseen")


@pytest.mark.parametrize("drops", [False, True])
def test_a_prompt_that_was_written_to_a_cache_and_not_told_is_booked_so(hostile, drops) -> None:
    """Red before: an hour in the cache costs twice the prompt, and was booked once."""
    words, team = 4000, f"written {drops}"
    text = {"type": "text", "text": "word " * words, "cache_control": {"type": "ephemeral"}}
    text["cache_control"]["ttl"] = "1h"
    body = {**SEARCH, "model": "claudestops", "messages": [{"role": "user", "content": [text]}]}
    hostile.play("claudestops", silent(words * 2_000_000, says=False, drops=drops))
    if drops:
        hostile.post(team, MESSAGES, body)
    else:
        hostile.begin(team, MESSAGES, body)[0].close()
    (row,) = hostile.judged(team)
    assert row["basis"] == "estimated"


@pytest.mark.parametrize("drops", [False, True])
def test_sound_in_a_prompt_that_was_not_told_has_its_own_price(hostile, drops) -> None:
    """Red before: two seconds for $0.0008 were booked as text for $0.00005."""
    team = f"heard {drops}"
    wav = {"data": base64.b64encode(sound(2)).decode(), "format": "wav"}
    said = [{"role": "user", "content": [{"type": "input_audio", "input_audio": wav}]}]
    body = {**ROW, "model": "hears", "messages": said, "stream": True}
    hostile.play("stopping", silent(20 * 40_000_000, says=True, drops=drops))
    if drops:
        hostile.post(team, CHAT, body)
    else:
        hostile.begin(team, CHAT, body)[0].close()
    (row,) = hostile.judged(team)
    assert row["cost_pusd"] < row["bound_pusd"] / 2

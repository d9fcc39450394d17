"""Attempts that fail, or are left, after bytes were sent: each is booked at what it is billed."""

import base64
import io
import wave
from itertools import product

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


def test_each_attempt_is_booked_at_its_own_bill(hostile) -> None:
    """The first lies or fails, the second is honest. Counted statuses: red before."""
    answers = {}
    for stream, (fails, script) in product((True, False), FAILS.items()):
        hostile.play("any", script, honest)
        team = f"row {fails} {stream}"
        answers[team] = hostile.post(team, CHAT, {**ROW, "stream": stream})
        hostile.calm()
    for team, answer in answers.items():
        rows = hostile.judged(team)
        if answer.status_code == 200 and len(rows) == 2:
            assert rows[-1]["cost_pusd"] == hostile.bills(team)[-1], team
        if "counted" in team:
            assert [row["cost_pusd"] for row in rows] == hostile.bills(team), team
            assert [row["status"] for row in rows] == ["upstream_error", "finished"], team


def test_three_attempts_hold_one_after_the_other(hostile) -> None:
    """A team with room for one and a half bounds gets its answer from the third."""
    hostile.play("any", counted_error(503), counted_error(500), honest)
    team = "tight-first"
    assert hostile.post(team, CHAT, {**ROW, "max_tokens": 50}).status_code == 200
    rows = hostile.judged(team, 0.005)
    assert [row["cost_pusd"] for row in rows] == hostile.bills(team)
    assert len(rows) == 3


def test_a_refusal_is_booked_at_what_was_read(hostile) -> None:
    """Red before: the client's own fault was free. A refused prompt is booked by its estimate."""
    answers = []
    for fails in (filtered, counted_error(400), counted_error(404)):
        hostile.play("any", fails)
        answers.append(hostile.post("refused", CHAT, {**ROW, "model": "first"}).status_code)
        hostile.calm()
    rows = hostile.judged("refused")
    told = list(zip(answers, (row["http_status"] for row in rows), strict=True))
    assert told == [(400, 400), (400, 400), (502, 404)]
    assert min(row["cost_pusd"] for row in rows) > 0


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


def test_a_file_or_picture_that_broke_off_is_paid_for(hostile) -> None:
    stack = hostile.stack
    for media, (kind, (path, body, pusd)) in product((WHOLE, "audio/mpeg"), MEDIA.items()):
        team = f"{kind} {media}"
        hostile.play("any", breaks_media(pusd, media), makes_media(kind, pusd))
        if body:
            hostile.post(team, path, {"model": kind, **body})
        else:
            file, headers = {"file": ("a.wav", sound(2))}, stack.headers(hostile.token(team))
            stack.client.post(stack.url + path, data={"model": kind}, files=file, headers=headers)
        hostile.calm()
    for media, (kind, (_, _, pusd)) in product((WHOLE, "audio/mpeg"), MEDIA.items()):
        team = f"{kind} {media}"
        hostile.judged(team)
        assert min(hostile.bills(team)) == pusd


TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
SEARCH = {"max_tokens": 50, "messages": [{"role": "user", "content": "news?"}], "stream": True}


def test_searches_of_an_answer_that_is_left_are_booked_as_billed(hostile) -> None:
    """Red before at a provider that stops: $0.0394 were billed and $0.0004 booked."""
    teams = []
    for path, model in product((MESSAGES, CHAT), ("claude", "claudestops")):
        teams.append(f"left {model} {path}")
        hostile.play(model, searches(stops=model == "claudestops", ends=True, pause_s=0.02))
        asked = {"tools": [TOOL]} if path == MESSAGES else {"web_search_options": {}}
        connection, _ = hostile.begin(teams[-1], path, {**SEARCH, **asked, "model": model})
        connection.close()
    for team in teams:
        (row,) = hostile.judged(team)
        assert (row["status"], row["basis"]) == ("client_gone", "reported")
        assert [row["cost_pusd"]] == hostile.bills(team)


def test_what_broke_off_while_it_searched_is_booked_at_its_hold(hostile) -> None:
    """Red before: nobody knew of searches that no usage told of."""
    for model in ("claude", "claudestops"):
        hostile.play(model, searches(stops=False, ends=False))
        hostile.post("dropped", MESSAGES, {**SEARCH, "tools": [TOOL], "model": model})
    rows = hostile.judged("dropped")
    assert [(row["basis"], row["flag"]) for row in rows] == [("bound", "unseen")] * 2


def begin_or_post(hostile, team: str, path: str, body: dict, *, drops: bool) -> None:
    if drops:
        hostile.post(team, path, body)
    else:
        hostile.begin(team, path, body)[0].close()


def test_a_prompt_that_was_written_to_a_cache_and_not_told_is_booked_so(hostile) -> None:
    """Red before: an hour in the cache costs twice the prompt, and was booked once."""
    words = 4000
    text = {"type": "text", "text": "word " * words, "cache_control": {"type": "ephemeral"}}
    text["cache_control"]["ttl"] = "1h"
    body = {**SEARCH, "model": "claudestops", "messages": [{"role": "user", "content": [text]}]}
    for drops in (False, True):
        hostile.play("claudestops", silent(words * 2_000_000, says=False, drops=drops))
        begin_or_post(hostile, "written", MESSAGES, body, drops=drops)
    assert [row["basis"] for row in hostile.judged("written")] == ["estimated"] * 2


def test_sound_in_a_prompt_that_was_not_told_has_its_own_price(hostile) -> None:
    """Red before: two seconds for $0.0008 were booked as text for $0.00005."""
    wav = {"data": base64.b64encode(sound(2)).decode(), "format": "wav"}
    said = [{"role": "user", "content": [{"type": "input_audio", "input_audio": wav}]}]
    body = {**ROW, "model": "hears", "messages": said, "stream": True}
    for drops in (False, True):
        hostile.play("stopping", silent(20 * 40_000_000, says=True, drops=drops))
        begin_or_post(hostile, "heard", CHAT, body, drops=drops)
    assert all(row["cost_pusd"] < row["bound_pusd"] / 2 for row in hostile.judged("heard"))

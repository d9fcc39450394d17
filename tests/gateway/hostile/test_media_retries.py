"""Speech, pictures and sound whose first try fails after it was made."""

import io
import wave

import pytest
from test_chains import show

TEXT = "word " * 40
CASES = {
    "tts": ("/v1/audio/speech", {"input": TEXT, "voice": "a"}, 15_000_000 * len(TEXT)),
    "pic": ("/v1/images/generations", {"prompt": "a cat", "n": 2}, 80_000_000_000),
    "hear": ("/v1/audio/transcriptions", None, 200_000_000),
}


def sound(seconds=2):
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 8000 * seconds)
    return data.getvalue()


def ask(hostile, kind, team, **more):
    path, body, _ = CASES[kind]
    stack, token = hostile.stack, hostile.token(team)
    if body is not None:
        return stack.post(path, {"model": kind, **body, **more}, token)
    return stack.client.post(
        stack.url + path,
        headers=stack.headers(token),
        data={"model": kind},
        files={"file": ("a.wav", sound())},
    )


def answers(kind, pusd):
    async def script(call):
        call.bill.other_pusd = pusd
        if kind == "tts":
            call.head(200, "audio/mpeg", content_length="3000")
            call.send(b"\xff\xfb\x90\x00" * 750)
        elif kind == "pic":
            call.answer({"created": 1, "data": [{"url": "https://example.com/a.png"}] * 2})
        else:
            call.answer({"text": "hello there"})

    return script


def breaks(pusd, at):
    async def script(call):
        call.bill.other_pusd = pusd
        if at == "body":
            call.head(200, "application/json", content_length="3000")
            call.send(b"{")
        if at == "sound":
            call.head(200, "audio/mpeg", content_length="3000")
            call.send(b"\xff\xfb\x90\x00" * 10)
        if at == "error":
            call.answer({"error": {"message": "broke", "type": "server_error"}}, 500)
            return
        if at == "later":
            call.answer(
                {
                    "error": {"message": "broke", "type": "server_error"},
                    "data": [{"url": "x"}] * 2,
                    "usage": {"input_tokens": 5, "output_tokens": 10},
                },
                500,
            )
            return
        await call.drop()

    return script


@pytest.mark.parametrize("at", ["head", "body", "sound", "error", "later"])
@pytest.mark.parametrize("kind", CASES)
def test_kinds(hostile, kind, at) -> None:
    team, pusd = f"m-{kind}-{at}", CASES[kind][2]
    hostile.play("any", breaks(pusd if at != "error" else 0, at), answers(kind, pusd))
    answer = ask(hostile, kind, team)
    print(answer.status_code, answer.text[:100] if answer.status_code != 200 else "")
    show(hostile, team)
    hostile.judge(team)

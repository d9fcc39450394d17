"""What the official `openai` SDK makes of sound and its transcripts: told as JSON.

    python sound_checks.py        reads OPENAI_BASE_URL and OPENAI_API_KEY

Nothing of the product is imported; every major of the SDK runs this very file.
"""

import io
import json
import struct
import traceback
from importlib.metadata import version

import openai

HEAR = {"model": "hear"}


def speech(seconds: float) -> tuple[str, io.BytesIO]:
    size = 2 * round(16_000 * seconds)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 1,
                       16_000, 32_000, 2, 16, b"data", size)  # fmt: skip
    return ("speech.wav", io.BytesIO(head + bytes(size)))


def transcript(client) -> dict:
    raw = client.audio.transcriptions.with_raw_response.create(
        file=speech(2.0), language="en", temperature=0.0, **HEAR
    )
    answer = raw.parse()
    return {
        "text": answer.text,
        "usage": answer.usage.to_dict(),
        "request_id": raw.headers["x-request-id"],
        "cost": raw.headers["x-breakeven-cost-usd"],
    }


def verbose(client) -> dict:
    answer = client.audio.transcriptions.create(
        file=speech(2.0), response_format="verbose_json",
        timestamp_granularities=["word", "segment"], **HEAR,
    )  # fmt: skip
    return {"text": answer.text, "duration": float(answer.duration)}


def plain(client) -> dict:
    found = {}
    for shape in ("text", "srt", "vtt"):
        found[shape] = client.audio.transcriptions.create(
            file=speech(2.0), response_format=shape, **HEAR
        )
    return found


def stream(client) -> dict:
    events = client.audio.transcriptions.create(file=speech(2.0), model="hear-4o", stream=True)
    kinds, text, done = [], "", None
    for event in events:
        kinds.append(event.type)
        text += getattr(event, "delta", "")
        done = getattr(event, "text", done)
    return {"kinds": sorted(set(kinds)), "text": text, "done": done}


def translation(client) -> dict:
    return {"text": client.audio.translations.create(file=speech(2.0), **HEAR).text}


def not_heard(client) -> dict:
    try:
        client.audio.transcriptions.create(file=speech(1.0), model="chat")
    except openai.BadRequestError as error:
        return {"status": error.status_code, "param": error.param, "message": error.message}
    return {}


def main() -> None:
    client = openai.OpenAI()
    found = {"sdk": version("openai")}
    for check in (transcript, verbose, plain, stream, translation, not_heard):
        try:
            found[check.__name__] = check(client)
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[check.__name__] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()

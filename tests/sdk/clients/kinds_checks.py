"""What the official `openai` SDK makes of pictures, speech, moderations and Azure: told as JSON.

    python kinds_checks.py        reads OPENAI_BASE_URL, OPENAI_API_KEY, POOR_KEY

Nothing of the product is imported; every major of the SDK runs this very file.
"""

import json
import os
import traceback
from importlib.metadata import version

import openai

ROOT = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
KEY = os.environ["OPENAI_API_KEY"]


def pictures(client) -> dict:
    raw = client.images.with_raw_response.generate(
        model="draw", prompt="a cat", n=2, size="1024x1792", quality="hd"
    )
    answer = raw.parse()
    return {
        "count": len(answer.data),
        "cost": raw.headers["x-breakeven-cost-usd"],
        "backend": raw.headers["x-breakeven-backend"],
    }


def pictures_in_tokens(client) -> dict:
    answer = client.images.generate(model="draw-tokens", prompt="a cat", quality="low")
    return {"usage": answer.usage.to_dict(), "data": bool(answer.data[0].b64_json)}


def pictures_streamed(client) -> dict:
    events = client.images.generate(
        model="draw-tokens", prompt="a cat", quality="low", stream=True, partial_images=2
    )
    return {"kinds": [event.type for event in events]}


def edits(client) -> dict:
    """As files, one or several, with a mask, and shown while they are made."""
    file, mask = ("a.png", b"picture", "image/png"), ("m.png", b"mask", "image/png")
    whole = client.images.edit(model="draw", image=file, mask=mask, prompt="a cat", n=2)
    counted = client.images.edit(model="draw-tokens", image=[file, file], prompt="a cat")
    events = client.images.edit(
        model="draw-tokens", image=file, prompt="a cat", stream=True, partial_images=1
    )
    return {
        "count": len(whole.data),
        "read": counted.usage.input_tokens_details.image_tokens,
        "kinds": [event.type for event in events],
    }


def speech(client) -> dict:
    with client.audio.speech.with_streaming_response.create(
        model="speak", voice="alloy", input="Good morning.", response_format="wav"
    ) as answer:
        pieces = list(answer.iter_bytes())
        media = answer.headers["content-type"]
    return {"bytes": sum(map(len, pieces)), "media": media}


def speech_in_events(client) -> dict:
    with client.audio.speech.with_streaming_response.create(
        model="speak-tokens", voice="alloy", input="Good morning.", stream_format="sse"
    ) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
    events = [json.loads(line) for line in lines]
    return {"kinds": sorted({event["type"] for event in events}), "usage": events[-1]["usage"]}


def moderation(client) -> dict:
    answer = client.moderations.create(input=["peace", "violence"])
    return {"flagged": [result.flagged for result in answer.results], "model": answer.model}


def azure(_client) -> dict:
    """The deployment stands in the path, the key in `api-key`."""
    client = openai.AzureOpenAI(
        azure_endpoint=ROOT, azure_deployment="chat", api_key=KEY, api_version="2024-10-21"
    )
    asked = [{"role": "user", "content": "hello"}]
    whole = client.chat.completions.create(model="chat", messages=asked, max_tokens=3)
    parts = client.chat.completions.create(
        model="chat", messages=asked, max_tokens=3, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    usage = [part.usage.completion_tokens for part in parts if part.usage]
    by_model = openai.AzureOpenAI(azure_endpoint=ROOT, api_key=KEY, api_version="2024-10-21")
    drawn = by_model.images.generate(model="draw", prompt="a cat")
    heard = by_model.audio.speech.create(model="speak", voice="alloy", input="hello")
    embedded = by_model.embeddings.create(model="embed", input="hello")
    return {
        "tokens": [whole.usage.completion_tokens, *usage],
        "pictures": len(drawn.data),
        "bytes": len(heard.content),
        "size": len(embedded.data[0].embedding),
    }


def azure_v1(_client) -> dict:
    client = openai.OpenAI(base_url=f"{ROOT}/openai/v1/", api_key=KEY)
    answer = client.responses.create(model="chat", input="hello", max_output_tokens=3, store=False)
    return {"status": answer.status, "models": "chat" in [each.id for each in client.models.list()]}


def bare(_client) -> dict:
    client = openai.OpenAI(base_url=ROOT, api_key=KEY)
    asked = [{"role": "user", "content": "hello"}]
    answer = client.chat.completions.create(model="chat", messages=asked, max_tokens=3)
    return {"tokens": answer.usage.completion_tokens}


def refused(client) -> dict:
    """By a budget, and by a path that is not served; each says what to do."""
    poor = openai.OpenAI(api_key=os.environ["POOR_KEY"], max_retries=0)
    found = {}
    for name, ask in {
        "pictures": lambda: poor.images.generate(model="draw", prompt="a cat"),
        "speech": lambda: poor.audio.speech.create(model="speak", voice="a", input="hello"),
        "stores": client.vector_stores.list,
        "jobs": client.fine_tuning.jobs.list,
        "film": client.videos.list,
        "variation": lambda: client.images.create_variation(image=b"picture"),
    }.items():
        try:
            ask()
        except openai.APIStatusError as error:
            found[name] = [error.status_code, error.code]
    return found


def main() -> None:
    client = openai.OpenAI()
    found = {"sdk": version("openai")}
    for check in (
        pictures, pictures_in_tokens, pictures_streamed, edits, speech, speech_in_events,
        moderation,
        azure, azure_v1, bare, refused,
    ):  # fmt: skip
        try:
            found[check.__name__] = check(client)
        except Exception:  # noqa: BLE001  (one broken check must not hide the others)
            found[check.__name__] = {"failed": traceback.format_exc()[-1500:]}
    print(json.dumps(found))


main()

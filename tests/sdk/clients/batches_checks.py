"""A client program of the official `openai` SDK that gives work away as a batch; told as JSON.

    python batches_checks.py        reads OPENAI_BASE_URL, OPENAI_API_KEY and OTHER_KEY

Nothing of the product is imported; every major of the SDK runs this very file.
"""

import io
import json
import os
import time
from importlib.metadata import version

import openai

CHAT = "/v1/chat/completions"
ENDED = ("completed", "failed", "expired", "cancelled")


def line(custom_id: str, **changes) -> dict:
    ask = [{"role": "user", "content": "Name a machine."}]
    body = {"model": "chat", "messages": ask, "max_tokens": 5, **changes}
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body}


def uploaded(client, lines: list[dict]):
    text = "\n".join(json.dumps(line) for line in lines).encode()
    return client.files.create(file=("in.jsonl", io.BytesIO(text)), purpose="batch")


def ended(client, batch):
    limit = time.monotonic() + 60
    while batch.status not in ENDED and time.monotonic() < limit:
        time.sleep(0.2)
        batch = client.batches.retrieve(batch.id)
    return batch


def caught(call) -> dict:
    try:
        call()
    except openai.APIError as error:
        return {"raised": type(error).__name__, "code": error.code}
    return {"raised": None}


def made(client, lines: list[dict], **given):
    file = uploaded(client, lines)
    return client.batches.create(
        input_file_id=file.id, endpoint=CHAT, completion_window="24h", **given
    )


def main() -> None:
    client = openai.OpenAI()
    other = openai.OpenAI(api_key=os.environ["OTHER_KEY"])
    file = uploaded(client, [line("a"), line("b"), line("bad", n=0)])
    batch = client.batches.create(
        input_file_id=file.id, endpoint=CHAT, completion_window="24h", metadata={"job": "x"}
    )
    done = ended(client, batch)
    output = client.files.content(done.output_file_id).text
    errors = client.files.content(done.error_file_id).text
    failed = ended(client, made(client, [line("a"), line("a"), line("c", model="nowhere")]))
    cancelled = client.batches.cancel(made(client, [line("a")]).id)
    pages = [item.id for item in client.batches.list(limit=1)]
    names = [item.id for item in client.files.list(purpose="batch")]
    found = {
        "sdk": version("openai"),
        "file": {"object": file.object, "purpose": file.purpose, "bytes": file.bytes},
        "retrieved": client.files.retrieve(file.id) == file,
        "made": {"status": batch.status, "object": batch.object},
        "done": {
            "status": done.status,
            "counts": done.request_counts.model_dump(),
            "metadata": done.metadata,
        },
        "output": [json.loads(text) for text in output.splitlines()],
        "errors": [json.loads(text) for text in errors.splitlines()],
        "failed": {
            "status": failed.status,
            "errors": [[datum.line, datum.code] for datum in failed.errors.data],
        },
        "cancelled": [cancelled.status, ended(client, cancelled).status],
        "pages": [len(pages), len(set(pages)), pages[-1] == batch.id],
        "names": file.id in names,
        "other": [
            caught(lambda: other.files.retrieve(file.id)),
            caught(lambda: other.batches.retrieve(batch.id)),
        ],
        "deleted": client.files.delete(file.id).deleted,
        "gone": caught(lambda: client.files.content(file.id)),
    }
    print(json.dumps(found))


main()

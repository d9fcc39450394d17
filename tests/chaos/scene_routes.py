"""B5: every path that reaches a target, for a model whose price nobody knows.

A key with a hard budget is refused on each, and no target hears of it; a key without one is
served, flagged as unpriced, which also shows that the path does reach a target.
"""

import io
import json
import wave
from typing import Any

import httpx
from scene import Given, Scene, SceneFigures
from stage import Stage, eventually

from gateway.request.inference_api import HOT

# Ask nobody, or own engines alone, whose hours are paid.
FREE = {"/v1/messages/count_tokens", "/v1/responses/input_tokens", "/tokenize", "/detokenize"}
# Ask through the others, or read and change what these left.
LATER = {
    "/v1/files", "/v1/batches", "/v1/batches/{batch_id}/cancel",
    "/v1/messages/batches", "/v1/messages/batches/{batch_id}/cancel",
    "/v1/responses/{response_id}/cancel",
    "/v1/chat/completions/{completion_id}", "/v1/conversations",
    "/v1/conversations/{conversation_id}", "/v1/conversations/{conversation_id}/items",
}  # fmt: skip
MANAGED = ("/admin/", "/v1/organization/")  # by people: no request goes to a target
SAY = [{"role": "user", "content": "hello"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": SAY, "max_tokens": 4},
    "/v1/completions": {"prompt": "hello", "max_tokens": 4},
    "/v1/embeddings": {"input": "hello"},
    "/v1/messages": {"messages": SAY, "max_tokens": 4},
    "/v1/responses": {"input": "hello", "max_output_tokens": 16},
    "/v1/responses/compact": {"input": "hello"},
    "/v1/audio/speech": {"input": "hello", "voice": "a"},
    "/v1/images/generations": {"prompt": "hello"},
    "/v1/images/edits": {},
    "/v1/moderations": {"input": "hello"},
    "/v1/score": {"text_1": "a", "text_2": "b"},
    "/score": {"text_1": "a", "text_2": "b"},
    "/v1/rerank": {"query": "q", "documents": ["a", "b"]},
    "/v2/rerank": {"query": "q", "documents": ["a", "b"]},
    "/rerank": {"query": "q", "documents": ["a", "b"]},
    "/v1/audio/transcriptions": {},
    "/v1/audio/translations": {},
}
KINDS = [
    "chat", "completion", "embedding", "rerank", "transcription", "speech", "image_generation",
    "image_edit", "moderation", "score",
]  # fmt: skip
TIGHT = [{"scope": "team:tight", "usd": 10, "period": "day", "hard": True}]


def sound() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(bytes(8000))
    return file.getvalue()


def ask(host: Any, path: str, token: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}", "anthropic-version": "2023-06-01"}
    url, body = host.url + path, {"model": "dark/m", **BODIES[path]}
    if path in ("/v1/audio/transcriptions", "/v1/audio/translations"):
        files = {"file": ("a.wav", sound(), "audio/wav")}
        return host.client.post(url, files=files, data={"model": "dark/m"}, headers=headers)
    if path == "/v1/images/edits":
        files, fields = {"image": ("a.png", b"picture", "image/png")}, {"prompt": "hello"}
        return host.client.post(
            url, files=files, data={"model": "dark/m", **fields}, headers=headers
        )
    return host.client.post(url, json=body, headers=headers)


def play(given: Given) -> SceneFigures:
    found = SceneFigures(unjustified=None)
    with Stage(given, "unpriced is free") as stage:
        base = f"http://127.0.0.1:{stage.upstream.port}/v1"
        host = stage.host(
            budgets=TIGHT,
            models={"own": {"targets": ["up/m"]}, "dark/*": "passthrough"},
            providers={
                "up": {"base_url": base, "simulated": True, "prices_as": "openai/gpt-4o-mini"},
                "dark": {"base_url": base, "simulated": True, "kinds": KINDS},
            },
        )
        host.start()
        inventory(host, found)
        before = len(stage.upstream.entries())
        tight, free = host.key("tight", team="tight"), host.key("free", team="free")
        answers = {path: ask(host, path, tight) for path in sorted(BODIES)}
        wrong = {path: answer.status_code for path, answer in answers.items()
                 if not refused(answer)}  # fmt: skip
        found.expect("not refused", json.dumps(wrong) if wrong else "", holds=not wrong)
        reached = len(stage.upstream.entries()) - before
        found.expect("reached the target", reached, holds=reached == 0)
        served = {path: ask(host, path, free).status_code for path in sorted(BODIES)}
        blocked = {path: status for path, status in served.items() if status != 200}
        found.expect("closed without a budget", json.dumps(blocked) if blocked else "",
                     holds=not blocked)  # fmt: skip
        count = len(served) - len(blocked)
        rows = eventually(lambda: whole(host.rows("team_id = 'free'"), count))
        flagged = sum(row["flag"] == "unpriced" and row["cost_pusd"] is None for row in rows)
        found.expect("flagged", flagged, holds=flagged == len(rows))
        found.expect("exit", code := host.terminate(), holds=code == 0)
    found.size = f"{len(BODIES)} paths"
    found.overspent_pusd = 0 if not found.faults else None
    return found


def whole(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return rows if len(rows) == count and all(row["settled_us"] for row in rows) else []


def refused(answer: httpx.Response) -> bool:
    return answer.status_code == 400 and "price" in answer.text


def inventory(host: Any, found: SceneFigures) -> None:
    """Every path that takes a POST is one of those asked here, or is known to reach nobody."""
    described = host.client.get(f"{host.url}/openapi.json").json()["paths"]
    posts = {path for path, verbs in described.items() if "post" in verbs} | set(HOT)
    unknown = posts - set(BODIES) - FREE - LATER
    unknown -= {path for path in unknown if path.startswith(MANAGED)}
    found.expect("unknown paths", ", ".join(sorted(unknown)), holds=not unknown)
    found.figures["paths that take a POST"] = len(posts)


SCENES = (
    Scene(
        "B5", "B5", "models without a price on every path", play,
        "what has no price is held at nothing", databases=("sqlite",),
    ),
)  # fmt: skip

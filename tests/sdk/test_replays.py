"""What coding agents and frameworks send, replayed: the fast tier of `test_loops.py`.

`record.py` kept the requests of each. Here they are sent again, with the names that this gateway
gave in place of those of then; every answer has the form that its API publishes, and a row.
"""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from record import RECORDED, names_in

RECORDINGS = Path(__file__).with_name("recorded")
APPLIED_LIMIT_S = 60
REPEATED = "x-stainless-retry-count"
ROWS = (
    "SELECT status, input_tokens + cached_tokens AS input, output_tokens AS output, cost_pusd"
    " FROM attempts WHERE team_id = :team AND settled_us IS NOT NULL"
)
CURL = [
    {"path": path, "headers": {"user-agent": "curl/8.5.0", "accept": "*/*"}, "status": 200,
     "names": [], "body": {"model": "loop", "stream": stream, **body}}
    for path, body in (
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/responses", {"input": "hi"}),
        ("/v1/messages", {"max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}),
    )
    for stream in (False, True)
]  # fmt: skip
WEBUI = [  # Open WebUI: a chat, its title, and a document of its own
    {"path": "/v1/chat/completions", "headers": {"x-openwebui-chat-id": "c"},
     "status": 200, "names": [], "body": {
         "stream": True, "model": "loop", "messages": [{"role": "user", "content": "hi"}],
         "stream_options": {"include_usage": True}}},
    {"path": "/v1/chat/completions", "headers": {}, "status": 200, "names": [], "body": {
        "model": "loop", "messages": [{"role": "user", "content": "### Task: a title"}],
        "stream": False, "max_completion_tokens": 1000}},
    {"path": "/v1/embeddings", "headers": {}, "status": 200, "names": [], "body": {
        "input": ["a machine"], "model": "text-embedding-3-small"}},
]  # fmt: skip
BY_HAND = ("n8n", "flowise")  # each installs two gigabytes: recorded once, with `Recorder`
NAMES = [*RECORDED, *BY_HAND, "curl", "open-webui"]


def recorded(name: str) -> list[dict[str, Any]]:
    if name in {"curl", "open-webui"}:
        return CURL if name == "curl" else WEBUI
    lines = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def replay(name: str, gateway, team: str) -> list[tuple[str, httpx.Response]]:
    """The answers, by path. What an answer named then is named in later requests as it is now."""
    key, renamed, answers = gateway.key(team=team), {}, []
    with httpx.Client(trust_env=False, timeout=30) as client:
        for kept in recorded(name):
            body = json.dumps(kept["body"])
            for then, now in renamed.items():
                body = body.replace(f'"{then}"', f'"{now}"')
            headers = {"content-type": "application/json", **kept["headers"]}
            authorized = {**headers, "authorization": f"Bearer {key}"}
            answer = client.post(gateway.root + kept["path"], content=body, headers=authorized)
            assert answer.status_code == kept["status"], answer.text
            now = names_in(answer.text)
            assert len(now) >= len(kept["names"])
            renamed.update(zip(kept["names"], now, strict=False))
            answers.append((kept["path"].partition("?")[0], answer))
    return answers


def usage_of(answer: httpx.Response) -> tuple[int, int] | None:
    """Tokens that an answer tells: the last of each name: Messages tells them twice."""

    def last(pattern: str) -> int | None:
        found = re.findall(rf'"(?:{pattern})":\s*(\d+)', answer.text)
        return int(found[-1]) if found else None

    given, output = last("input_tokens|prompt_tokens"), last("output_tokens|completion_tokens")
    if given is None:
        return None
    beside = (last("cache_read_input_tokens") or 0) + (last("cache_creation_input_tokens") or 0)
    return given + beside, output or 0


@pytest.fixture(scope="module")
def forms_told(gateway, see, tmp_path_factory) -> dict[str, Any]:
    """All answers, and what the types of OpenAI's and Anthropic's SDK find wrong with them."""
    answers = {name: replay(name, gateway, f"replay-{name}") for name in NAMES}
    folder, wrong = tmp_path_factory.mktemp("forms"), []
    for part in ("openai-3", "anthropic"):
        given = [
            {"client": name, "path": path, "text": answer.text}
            for name, pairs in answers.items()
            for path, answer in pairs
            if path.startswith("/v1/messages") == (part == "anthropic")
        ]
        (folder / part).write_text(json.dumps(given), encoding="utf-8")
        told = see(part, "form_checks", folder, {"ANSWERS": str(folder / part)})
        assert told["judged"] >= len(given)
        wrong += told["wrong"]
    return {"answers": answers, "wrong": wrong}


pytestmark = [pytest.mark.part("openai-3"), pytest.mark.part("anthropic")]


def test_every_answer_has_its_published_form(forms_told: dict) -> None:
    assert forms_told["wrong"] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_has_its_row(gateway, forms_told: dict, name: str) -> None:
    answers = [answer for _, answer in forms_told["answers"][name]]
    team, count = f"replay-{name}", len(answers)
    rows = gateway.until(
        lambda: len(found := gateway.rows(ROWS, team=team)) == count and found, APPLIED_LIMIT_S
    )
    assert {row["status"] for row in rows} == {"finished"}
    assert all(row["cost_pusd"] for row in rows)
    booked = sorted((row["input"], row["output"]) for row in rows)
    told = [usage_of(answer) for answer in answers]
    for usage in filter(None, told):
        assert usage in booked
    if None not in told:
        assert sorted(told) == booked


CHUNK = '{"id": 1, "object": "chat.completion.chunk", "choices": "none"}'
VECTORS = (
    '{"object": "list", "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1},'
    ' "data": [{"object": "embedding", "index": 0, "embedding": "AAAAPwA="}]}'
)


@pytest.mark.parametrize(
    ("path", "text"),
    [("/v1/chat/completions", f"data: {CHUNK}\n\n"), ("/v1/embeddings", VECTORS)],
)
def test_a_wrong_form_is_found(see, tmp_path: Path, path: str, text: str) -> None:
    given = {"client": "control", "path": path, "text": text}
    (tmp_path / "answers").write_text(json.dumps([given]), encoding="utf-8")
    told = see("openai-3", "form_checks", tmp_path, {"ANSWERS": str(tmp_path / "answers")})
    assert told["wrong"]

"""Anthropic's batches through a running host: made, run, read, cancelled, deleted."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import Request

from gateway.batches.batch_maker import BatchClaim, BatchMaker
from gateway.batches.message_batches_api import _site_of

PATH = "/messages/batches"
ASK = [{"role": "user", "content": "hi"}]


def asked(custom_id: str, **params: Any) -> dict[str, Any]:
    members = {"model": "own", "max_tokens": 4, "messages": ASK, **params}
    return {"custom_id": custom_id, "params": members}


def make(client, *requests: dict[str, Any]) -> dict[str, Any]:
    answer = client.ask("POST", PATH, json={"requests": list(requests)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def ended(client, patiently, batch: dict[str, Any]) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        shown = client.ask("GET", f"{PATH}/{batch['id']}").json()
        return shown if shown["processing_status"] == "ended" else None

    return patiently(look)


def results(client, batch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    address = urlsplit(batch["results_url"])
    assert address.scheme == "http"
    assert address.netloc.startswith("127.0.0.1:")
    answer = client.ask("GET", address.path.removeprefix("/v1"))
    assert answer.status_code == 200, answer.text
    told = [json.loads(line) for line in answer.text.splitlines()]
    return {line["custom_id"]: line["result"] for line in told}


def refused(answer) -> tuple[int, str, str]:
    error = answer.json()
    assert error["type"] == "error"
    return answer.status_code, error["error"]["type"], error["error"]["message"]


def test_each_request_has_its_result(client, stack, with_runner, patiently) -> None:
    batch = make(
        client,
        asked("good", thinking={"type": "disabled"}),
        asked("bad", messages=[{"role": "user", "content": 5}]),
    )
    assert batch["id"].startswith("msgbatch_")
    assert batch["processing_status"] == "in_progress"
    assert (batch["results_url"], batch["ended_at"]) == (None, None)
    assert batch["request_counts"]["processing"] == 2
    with with_runner(stack):
        batch = ended(client, patiently, batch)
    assert batch["request_counts"] == {
        "processing": 0, "succeeded": 1, "errored": 1, "canceled": 0, "expired": 0,
    }  # fmt: skip
    told = results(client, batch)
    message = told["good"]["message"]
    assert (told["good"]["type"], message["type"], message["role"]) == (
        "succeeded", "message", "assistant"
    )  # fmt: skip
    assert message["usage"]["output_tokens"] == 4
    assert told["good"]["headers"] == {"x-breakeven-ignored": "thinking"}
    assert (told["bad"]["type"], told["bad"]["error"]["type"]) == ("errored", "error")


def test_betas_that_no_line_would_have_are_named(client) -> None:
    body = {"requests": [asked("a")]}
    headers = {"anthropic-beta": "message-batches-2024-09-24, b-2025-01-01,a-2025-02-02"}
    told = client.ask("POST", PATH, json=body, headers=headers).headers
    left_out = "anthropic-beta.a-2025-02-02, anthropic-beta.b-2025-01-01"
    assert told["x-breakeven-ignored"] == left_out
    headers = {"anthropic-beta": "message-batches-2024-09-24"}
    told = client.ask("POST", PATH, json=body, headers=headers).headers
    assert "x-breakeven-ignored" not in told


def test_what_was_not_tried_is_canceled(client, patiently, stack, with_runner) -> None:
    batch = make(client, asked("a"), asked("b"))
    assert refused(client.ask("GET", f"{PATH}/{batch['id']}/results"))[0] == 400
    assert refused(client.ask("DELETE", f"{PATH}/{batch['id']}"))[0] == 400
    cancelled = client.ask("POST", f"{PATH}/{batch['id']}/cancel").json()
    assert cancelled["processing_status"] == "canceling"
    assert cancelled["cancel_initiated_at"].endswith("Z")
    with with_runner(stack):
        batch = ended(client, patiently, batch)
    assert batch["request_counts"]["canceled"] == 2
    assert results(client, batch) == {"a": {"type": "canceled"}, "b": {"type": "canceled"}}
    again = client.ask("POST", f"{PATH}/{batch['id']}/cancel").json()
    assert again["processing_status"] == "ended"
    gone = client.ask("DELETE", f"{PATH}/{batch['id']}").json()
    assert gone == {"id": batch["id"], "type": "message_batch_deleted"}
    assert refused(client.ask("GET", f"{PATH}/{batch['id']}"))[:2] == (404, "not_found_error")
    files = client.ask("GET", "/files?limit=10000").json()["data"]
    assert batch["id"] not in json.dumps(files), "its files are deleted with it"


@pytest.mark.parametrize(
    ("requests", "place"),
    [
        ([], "requests"),
        ([asked("a"), asked("a")], "requests[1].custom_id"),
        ([asked("")], "requests[0].custom_id"),
        ([asked("a", model="nobody")], "requests[0].params.model"),
        ([asked("a", stream=True)], "requests[0].params.stream"),
        ([{"custom_id": "a", "params": 5}], "requests[0].params"),
        ([{"custom_id": "a"}], "params"),
        (5, "requests"),
    ],
)
def test_what_is_wrong_is_named_before_anything_is_taken(client, requests, place: str) -> None:
    before = client.ask("GET", "/files?limit=10000").json()["data"]
    status, kind, message = refused(client.ask("POST", PATH, json={"requests": requests}))
    unknown = place.endswith(".model")
    assert (status, kind) == (
        (404, "not_found_error") if unknown else (400, "invalid_request_error")
    )
    assert place in message
    assert client.ask("GET", "/files?limit=10000").json()["data"] == before


def test_one_key_makes_one_batch(client) -> None:
    headers, body = {"idempotency-key": "twice"}, {"requests": [asked("a")]}
    before = len(client.ask("GET", "/files?limit=10000").json()["data"])
    first, again = (client.ask("POST", PATH, json=body, headers=headers) for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert [item.headers.get("idempotent-replayed") for item in (first, again)] == [None, "true"]
    assert len(client.ask("GET", "/files?limit=10000").json()["data"]) == before + 1
    other = client.ask("POST", PATH, json={"requests": [asked("b")]}, headers=headers)
    assert other.status_code == 422
    client.ask("POST", f"{PATH}/{first.json()['id']}/cancel")


def test_who_comes_at_once_with_the_same_key_leaves_no_file(client, monkeypatch) -> None:
    """Red before: the later one's requests stayed, as a file that nobody reads."""
    real = BatchMaker.claim

    async def claim(*given: Any) -> BatchClaim:
        return replace(await real(*given), earlier=None)  # it looked before the batch was stored

    headers, body = {"idempotency-key": "at once"}, {"requests": [asked("a")]}
    before = len(client.ask("GET", "/files?limit=10000").json()["data"])
    monkeypatch.setattr(BatchMaker, "claim", claim)
    first, again = (client.ask("POST", PATH, json=body, headers=headers) for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert len(client.ask("GET", "/files?limit=10000").json()["data"]) == before + 1
    client.ask("POST", f"{PATH}/{first.json()['id']}/cancel")


def test_results_that_are_gone_are_told_to_be(client, stack, with_runner, patiently) -> None:
    batch = make(client, asked("a"))
    with with_runner(stack):
        batch = ended(client, patiently, batch)
    output = client.ask("GET", f"/batches/{batch['id']}").json()["output_file_id"]
    assert client.ask("DELETE", f"/files/{output}").status_code == 200
    status, kind, message = refused(client.ask("GET", f"{PATH}/{batch['id']}/results"))
    assert (status, kind) == (404, "not_found_error")
    assert "The results were deleted." in message


def test_another_team_has_other_batches(client, stack, make_client) -> None:
    batch = make(client, asked("a"))
    other = make_client(stack.url, stack.key("others", team="message-others").token)
    for method, path in (
        ("GET", ""), ("GET", "/results"), ("POST", "/cancel"), ("DELETE", "")
    ):  # fmt: skip
        assert refused(other.ask(method, f"{PATH}/{batch['id']}{path}"))[0] == 404
    assert other.ask("GET", PATH).json() == {
        "data": [], "has_more": False, "first_id": None, "last_id": None,
    }  # fmt: skip
    client.ask("POST", f"{PATH}/{batch['id']}/cancel")


def test_pages_go_both_ways_and_have_no_other_batches(stack, make_client, line) -> None:
    mine = make_client(stack.url, stack.key("pages", team="message-pages").token)
    ids = [make(mine, asked("a"))["id"] for _ in range(3)]
    openai = mine.make([line("a")])["id"]
    newest = mine.ask("GET", f"{PATH}?limit=2").json()
    assert ([item["id"] for item in newest["data"]], newest["has_more"]) == (ids[:0:-1], True)
    older = mine.ask("GET", f"{PATH}?after_id={newest['last_id']}").json()
    assert ([item["id"] for item in older["data"]], older["has_more"]) == (ids[:1], False)
    newer = mine.ask("GET", f"{PATH}?before_id={ids[0]}&limit=1").json()
    assert ([item["id"] for item in newer["data"]], newer["has_more"]) == (ids[1:2], True)
    assert [item["id"] for item in mine.ask("GET", "/batches").json()["data"]] == [openai]
    for each_id in ids:
        mine.ask("POST", f"{PATH}/{each_id}/cancel")
    mine.ask("POST", f"/batches/{openai}/cancel")


@pytest.mark.parametrize(
    ("headers", "site"),
    [
        ({"host": "a.example"}, "http://a.example"),
        ({"host": "a.example:8443", "x-forwarded-proto": "https"}, "https://a.example:8443"),
        ({"host": "[::1]:80", "x-forwarded-proto": "HTTPS, http"}, "https://[::1]:80"),
        ({"host": "a.example", "x-forwarded-proto": "javascript"}, "http://a.example"),
        ({"host": "a.example", "x-forwarded-prefix": "/llm/v2/"}, "http://a.example/llm/v2"),
        ({"host": "a.example", "x-forwarded-prefix": "//evil.example"}, "http://a.example"),
        ({"host": "a.example", "x-forwarded-prefix": "/a/../b?c"}, "http://a.example"),
        ({"host": "a.example/x?y"}, ""),
        ({}, ""),
    ],
)
def test_results_are_where_their_client_reached_the_gateway(headers, site: str) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "scheme": "http", "path": "/", "headers": pairs, "query_string": b"",
             "server": ("10.0.0.1", 80)}  # fmt: skip
    assert _site_of(Request(scope)) == site

"""Batches over HTTP: what may be asked for, pages, and what can be cancelled. No runner runs."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ledger.batches.files import FileRecord, FileStore

GOOD = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}


@pytest.fixture(scope="module")
def file_id(client, line) -> str:
    return client.upload([line("a")])["id"]


def refused(answer) -> tuple[int, str | None, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"endpoint": "/v1/audio"}, "endpoint"),
        ({"endpoint": None}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"metadata": {"a" * 65: "x"}}, "metadata"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 5}}, "output_expires_after"),
        ({"output_expires_after": {"anchor": "x", "seconds": 5000}}, "output_expires_after"),
    ],
)
def test_what_is_wrong_is_named(client, file_id, changes, param) -> None:
    asked = {"input_file_id": file_id, **GOOD, **changes}
    assert refused(client.ask("POST", "/batches", json=asked)) == (400, None, param)


def test_seconds_may_be_written_with_a_point(client, file_id) -> None:
    """JSON Schema counts `3600.0` as an integer, so the document allows it. Red before: 400."""
    expiry = {"anchor": "created_at", "seconds": 3600.0}
    asked = {"input_file_id": file_id, **GOOD, "output_expires_after": expiry}
    assert client.ask("POST", "/batches", json=asked).status_code == 200


def test_an_endpoint_without_v1_is_the_same(client, file_id) -> None:
    """Azure's documents spell it so."""
    asked = {"input_file_id": file_id, **GOOD, "endpoint": "/chat/completions"}
    made = client.ask("POST", "/batches", json=asked)
    assert (made.status_code, made.json()["endpoint"]) == (200, "/v1/chat/completions")


def test_what_is_no_json_and_what_is_missing(client) -> None:
    assert refused(client.ask("POST", "/batches", content=b"{")) == (400, None, None)
    assert refused(client.ask("POST", "/batches", json=GOOD)) == (400, None, "input_file_id")
    gone = client.ask("POST", "/batches", json={**GOOD, "input_file_id": "file-\u00e4"})
    assert refused(gone) == (404, "file_not_found", "input_file_id")
    long = client.ask("POST", "/batches", content=b" " * 70_000)
    assert refused(long)[0] == 413


def test_a_body_that_is_said_to_be_something_else_is_told_so(client) -> None:
    """As everywhere: `curl -d` says that it sends a form."""
    text = json.dumps({**GOOD, "input_file_id": "file-x"})
    for said in ("application/x-www-form-urlencoded", "text/plain; charset=utf-8", "json"):
        sent = client.ask("POST", "/batches", content=text, headers={"content-type": said})
        assert sent.status_code == (404 if said == "json" else 415)
    assert "empty" in client.ask("POST", "/batches", content=b" ").json()["error"]["message"]


def test_pages_and_cancelling(client, stack, make_client, line) -> None:
    mine = make_client(stack.url, stack.key("lister", team="listers").token)
    made = [mine.make([line("a")])["id"] for _ in range(3)]
    first = mine.ask("GET", "/batches?limit=2").json()
    assert [entry["id"] for entry in first["data"]] == made[:0:-1]
    assert (first["has_more"], first["last_id"]) == (True, made[1])
    rest = mine.ask("GET", f"/batches?limit=2&after={made[1]}").json()
    assert ([entry["id"] for entry in rest["data"]], rest["has_more"]) == (made[:1], False)
    assert refused(mine.ask("GET", "/batches?limit=101")) == (400, None, "limit")
    cancelled = mine.ask("POST", f"/batches/{made[0]}/cancel").json()
    assert (cancelled["status"], cancelled["cancelling_at"] is None) == ("cancelling", False)
    again = mine.ask("POST", f"/batches/{made[0]}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelling")


def test_one_idempotency_key_is_one_batch(client, file_id, stack) -> None:
    """A client that lost the answer sends the same again: its lines are not paid twice."""
    asked = {"input_file_id": file_id, **GOOD}

    def ask(key: str, **changes):
        headers = {"authorization": f"Bearer {client.token}", "idempotency-key": key}
        body = {**asked, **changes}
        return stack.client.post(f"{stack.url}/v1/batches", json=body, headers=headers)

    missing = {"input_file_id": "file-none"}
    assert ask("once", **missing).status_code == 404  # nothing was made: the key is free
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(ask, ["once"] * 4))
    assert {made_value.status_code for made_value in made} == {200}
    assert len({made_value.json()["id"] for made_value in made}) == 1
    assert ask("once").headers["idempotent-replayed"] == "true"
    assert refused(ask("once", metadata={"a": "b"})) == (
        422, "idempotency_key_reused", "Idempotency-Key",
    )  # fmt: skip
    assert refused(ask("\u00e4".encode("latin-1")))[0] == 400
    assert ask("another").json()["id"] != made[0].json()["id"]


def test_another_teams_batch_is_not_there(client, stack, make_client, line) -> None:
    made = client.make([line("a")])
    other = make_client(stack.url, stack.key("stranger", team="strangers").token)
    for method, path in (("GET", ""), ("POST", "/cancel")):
        answer = other.ask(method, f"/batches/{made['id']}{path}")
        assert refused(answer) == (404, "batch_not_found", "id")
    assert other.ask("GET", "/batches").json()["data"] == []


def test_a_team_has_so_many_batches_unfinished(run_stack, make_client, line) -> None:
    with run_stack(batches={"team_batches": 2}) as stack:
        mine = make_client(stack.url, stack.token)
        for _ in range(2):
            made = mine.make([line("a")])
        asked = {"input_file_id": made["input_file_id"], **GOOD}
        full = mine.ask("POST", "/batches", json=asked)
        assert refused(full) == (429, "too_many_batches", None)
        assert "2 unfinished batches" in full.json()["error"]["message"]


def test_output_files_are_no_input(client, stack) -> None:
    record = FileRecord("file-out", "search", "k", "batch_output", "o", 1, 10**18, 1, "processed")
    FileStore(stack.database).create(record)
    answer = client.ask("POST", "/batches", json={**GOOD, "input_file_id": "file-out"})
    assert refused(answer) == (400, None, "input_file_id")


def test_the_openapi_document_has_the_routes(stack) -> None:
    paths = stack.get("/openapi.json").json()["paths"]
    assert {"get", "post"} == set(paths["/v1/files"]) == set(paths["/v1/batches"])
    for path in ("/v1/files/{file_id}", "/v1/batches/{batch_id}/cancel"):
        for operation in paths[path].values():
            assert {"key": []} in operation["security"]
            assert {"200", "4XX", "5XX"} == set(operation["responses"])

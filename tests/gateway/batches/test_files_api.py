"""Files over HTTP: up, listed, read and deleted, each team its own; limits before memory."""

import contextlib
import http.client
import json
import socket
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from gateway.batches.files_api import UploadSlots
from gateway.errors import RequestError

MIB = 1024 * 1024
LATER = {"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}


def refused(answer) -> tuple[int, str | None, str | None]:
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return answer.status_code, error["code"], error["param"]


def test_up_and_down_again(client) -> None:
    content = bytes(range(256)) * 10_000  # more than two chunks
    made = client.upload(content)
    assert (made["object"], made["purpose"], made["bytes"]) == ("file", "batch", len(content))
    assert (made["filename"], made["status"]) == ("in.jsonl", "processed")
    assert made["expires_at"] - made["created_at"] == 30 * 86_400
    assert client.ask("GET", f"/files/{made['id']}").json() == made
    answer = client.ask("GET", f"/files/{made['id']}/content")
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    gone = client.ask("DELETE", f"/files/{made['id']}")
    assert gone.json() == {"id": made["id"], "object": "file", "deleted": True}
    for path in ("", "/content"):
        there = client.ask("GET", f"/files/{made['id']}{path}")
        assert refused(there) == (404, "file_not_found", "id")


def test_a_file_stays_until_its_batch_has_read_it(client) -> None:
    """Else the batch fails, of which its client has been told that it was made."""
    batch = client.make(b"{}")  # nobody carries batches here
    path = f"/files/{batch['input_file_id']}"
    refusal = client.ask("DELETE", path)
    assert refused(refusal) == (409, "file_in_use", "id")
    assert batch["id"] in refusal.json()["error"]["message"]
    assert refusal.headers["retry-after"] == "1"
    assert client.ask("GET", f"{path}/content").content == b"{}"
    other = client.upload(b"{}")
    assert client.ask("DELETE", f"/files/{other['id']}").json()["deleted"]
    assert client.ask("POST", f"/batches/{batch['id']}/cancel").json()["status"] == "cancelling"
    assert client.ask("DELETE", path).json()["deleted"]


def test_the_purpose_may_come_behind_the_file(client) -> None:
    """As Node's client sends it."""
    parts = [("file", ("a.jsonl", b"{}")), ("purpose", (None, "batch"))]
    answer = client.ask("POST", "/files", files=parts)
    assert answer.json()["purpose"] == "batch"


def test_a_file_may_go_earlier(client) -> None:
    made = client.upload(
        b"{}", **{"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}
    )
    assert made["expires_at"] - made["created_at"] == 3600


def test_one_idempotency_key_is_one_file(client, stack) -> None:
    """A client that lost the answer sends the same again, between another boundary."""

    def upload(key: str | bytes, content: bytes, **fields: str):
        return stack.client.post(
            f"{stack.url}/v1/files", files={"file": ("in.jsonl", content)},
            data={"purpose": "batch", **fields},
            headers={"authorization": f"Bearer {client.token}", "idempotency-key": key},
        )  # fmt: skip

    content = b"x" * (2 * MIB + 5)
    wrong = upload("a file", content, purpose="fine-tune")
    assert wrong.status_code == 400  # nothing was made: the key is free
    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(upload, ["a file"] * 3, [content] * 3))
    assert [made_value.status_code for made_value in made] == [200] * 3
    (file_id,) = {made_value.json()["id"] for made_value in made}
    again = upload("a file", content)
    assert (again.json()["id"], again.headers["idempotent-replayed"]) == (file_id, "true")
    alike = [
        entry
        for entry in client.ask("GET", "/files").json()["data"]
        if entry["bytes"] == 2 * MIB + 5
    ]
    assert [response["id"] for response in alike] == [file_id]
    for other in (
        upload("a file", content + b"y"),
        upload("a file", content, **LATER),
    ):
        assert refused(other) == (422, "idempotency_key_reused", "Idempotency-Key")
    assert refused(upload("\u00e4".encode("latin-1"), content))[0] == 400
    assert upload("another file", content).json()["id"] != file_id
    client.ask("DELETE", f"/files/{file_id}")
    late = upload("a file", content)
    assert refused(late) == (409, "duplicate_request", "Idempotency-Key")
    assert late.headers["x-should-retry"] == "false", "or SDKs send the same file twice more"


def test_who_comes_again_needs_no_room_for_the_file_twice(run_stack, make_client) -> None:
    with run_stack(batches={"team_limit_bytes": MIB}) as stack:
        client = make_client(stack.url, stack.token)
        given = {"files": {"file": ("a", b"x" * MIB)}, "data": {"purpose": "batch"}}
        headers = {"authorization": f"Bearer {stack.token}", "idempotency-key": "one"}
        made, again = (
            stack.client.post(f"{stack.url}/v1/files", headers=headers, **given) for _ in range(2)
        )
        assert made.json() == again.json(), again.text
        assert refused(client.ask("POST", "/files", **given)) == (413, "request_too_large", "file")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "purpose"),
        ({"purpose": "fine-tune"}, "purpose"),
        ({"purpose": "batch", "expires_after[seconds]": "9"}, "expires_after"),
        (
            {"purpose": "batch", "expires_after[anchor]": "created_at",
             "expires_after[seconds]": "9"},
            "expires_after",
        ),
        (
            {"purpose": "batch", "expires_after[anchor]": "created_at",
             "expires_after[seconds]": "9" * 5000},
            "expires_after",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_form_is_told_and_nothing_is_kept(client, fields, param) -> None:
    before = client.ask("GET", "/files").json()["data"]
    answer = client.ask("POST", "/files", files={"file": ("a", b"{}")}, data=fields)
    assert refused(answer) == (400, None, param)
    assert client.ask("GET", "/files").json()["data"] == before


@pytest.mark.parametrize("files", [{"file": ("a", b"")}, {"other": ("a", b"x")}])
def test_one_file_is_needed(client, files) -> None:
    answer = client.ask("POST", "/files", files=files, data={"purpose": "batch"})
    assert refused(answer) == (400, None, "file")


def test_other_bodies_are_no_forms(client) -> None:
    assert refused(client.ask("POST", "/files", json={}))[0] == 415
    half = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nabc'
    headers = {"content-type": "multipart/form-data; boundary=b"}
    answer = client._http.post(
        f"{client.base}/v1/files", content=half,
        headers={**headers, "authorization": f"Bearer {client.token}"},
    )  # fmt: skip
    assert refused(answer)[0] == 400


def test_pages(client, stack, make_client) -> None:
    mine = make_client(stack.url, stack.key("pages", team="pages").token)
    made = [mine.upload(b"x" * n)["id"] for n in range(1, 5)]
    first = mine.ask("GET", "/files?limit=3").json()
    assert [entry["id"] for entry in first["data"]] == made[:0:-1]
    assert first["has_more"]
    rest = mine.ask("GET", f"/files?limit=3&after={first['last_id']}").json()
    assert ([entry["id"] for entry in rest["data"]], rest["has_more"]) == (made[:1], False)
    oldest = mine.ask("GET", "/files?order=asc&limit=1&purpose=batch").json()
    assert oldest["data"][0]["id"] == made[0]
    assert mine.ask("GET", "/files?purpose=batch_output").json()["data"] == []
    assert refused(mine.ask("GET", "/files?limit=0")) == (400, None, "limit")
    assert refused(mine.ask("GET", "/files?order=up")) == (400, None, "order")


def test_the_document_tells_what_is_refused(stack, client) -> None:
    paths = stack.get("/openapi.json").json()["paths"]["/v1/files"]
    (order,) = [
        parameter for parameter in paths["get"]["parameters"] if parameter["name"] == "order"
    ]
    assert order["schema"]["enum"] == ["asc", "desc"]
    form = paths["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert form["propertyNames"] == {"minLength": 1}
    files = {"": (None, "x"), "purpose": (None, "batch"), "file": ("a", b"{}")}
    assert refused(client.ask("POST", "/files", files=files)) == (400, None, None)


def test_a_client_of_anthropics_is_told_that_its_files_are_not_kept(client) -> None:
    """It would take OpenAI's form for its own, of which it misses half."""
    made = client.upload(b"{}")
    for method, path in (("GET", "/files"), ("GET", f"/files/{made['id']}"), ("POST", "/files")):
        answer = client.ask(method, path, headers={"anthropic-version": "2023-06-01"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
        assert "base64" in answer.json()["error"]["message"]
    assert client.ask("GET", f"/files/{made['id']}").json() == made


def test_another_teams_file_is_not_there(client, stack, make_client) -> None:
    mine = client.upload(b"{}")["id"]
    other = make_client(stack.url, stack.key("stranger", team="strangers").token)
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        answer = other.ask(method, f"/files/{mine}{path}")
        assert refused(answer) == (404, "file_not_found", "id")
    assert other.ask("GET", "/files").json()["data"] == []
    asked = {"input_file_id": mine, "endpoint": "/v1/completions", "completion_window": "24h"}
    made = other.ask("POST", "/batches", json=asked)
    assert refused(made) == (404, "file_not_found", "input_file_id")
    assert client.ask("GET", f"/files/{mine}").status_code == 200


def test_no_key_no_files(stack, make_client) -> None:
    nobody = make_client(stack.url, "gw_0_0")
    for method, path in (("GET", "/files"), ("POST", "/files"), ("GET", "/files/x/content")):
        assert refused(nobody.ask(method, path))[:2] == (401, "invalid_api_key")


def test_limits(run_stack, make_client) -> None:
    limits = {"file_limit_bytes": 3 * MIB, "team_limit_bytes": 4 * MIB}
    with run_stack(batches=limits) as stack:
        mine = make_client(stack.url, stack.token)
        big = mine.ask(
            "POST", "/files", files={"file": ("a", b"x" * (4 * MIB))}, data={"purpose": "batch"}
        )
        assert refused(big) == (413, "request_too_large", "file")
        assert refused(chunked(mine, 4 * MIB)) == (413, "request_too_large", "file")
        for _ in range(2):
            mine.upload(b"x" * (2 * MIB))
        full = mine.ask("POST", "/files", files={"file": ("a", b"x")}, data={"purpose": "batch"})
        assert refused(full)[0] == 413
        assert "delete" in full.json()["error"]["message"]


def chunked(client, size: int):
    """Without a length that would tell at once."""

    def parts():
        yield b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(size // 65_536):
            yield b"x" * 65_536

    headers = {"content-type": "multipart/form-data; boundary=b"}
    return client._http.post(
        f"{client.base}/v1/files", content=parts(),
        headers={**headers, "authorization": f"Bearer {client.token}"},
    )  # fmt: skip


def test_slow_uploads_of_one_team_leave_room_for_others(run_stack, make_client) -> None:
    with run_stack() as stack, contextlib.ExitStack() as opened:
        mine = make_client(stack.url, stack.token)
        other = make_client(stack.url, stack.key("other", team="others").token)
        head = (
            f"POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {stack.token}\r\n"
            "content-type: multipart/form-data; boundary=b\r\ncontent-length: 9999\r\n\r\n--b"
        )
        for _ in range(20):
            create_connection = socket.create_connection(("127.0.0.1", stack.port), timeout=10)
            opened.enter_context(contextlib.closing(create_connection)).sendall(head.encode())
        form = {"files": {"file": ("a", b"{}")}, "data": {"purpose": "batch"}}
        # The gateway may not have read all of the twenty heads yet.
        answers = (mine.ask("POST", "/files", **form) for _ in range(50))
        full = next(answer for answer in answers if answer.status_code != 200)
        assert refused(full) == (503, "overloaded", None)
        assert "The team has" in full.json()["error"]["message"]
        assert other.upload(b"{}")["bytes"] == 2


def test_memory_is_bounded(client) -> None:
    """24 MB go through this process's gateway, and are never all in it."""
    body = b"x" * MIB
    connection = http.client.HTTPConnection(client.base.removeprefix("http://"), timeout=60)
    tracemalloc.start()
    head = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
    tail = b'\r\n--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n'
    connection.putrequest("POST", "/v1/files")
    connection.putheader("content-length", str(len(head) + 24 * MIB + len(tail)))
    connection.putheader("content-type", "multipart/form-data; boundary=b")
    connection.putheader("authorization", f"Bearer {client.token}")
    connection.endheaders()
    connection.send(head)
    for _ in range(24):
        connection.send(body)
    connection.send(tail)
    made = json.loads(connection.getresponse().read())
    connection.close()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made["bytes"] == 24 * MIB
    assert most < 12 * MIB
    client.ask("DELETE", f"/files/{made['id']}")


def taken(places: UploadSlots, team: str) -> bool:
    try:
        with places.reserve_slot(team):
            return True
    except RequestError:
        return False


def test_a_team_has_its_share_and_others_have_the_rest() -> None:
    places = UploadSlots(5, 2)
    with ExitStack() as open_:
        for team in ("a", "a", "b", "b"):
            open_.enter_context(places.reserve_slot(team))
        with (
            pytest.raises(RequestError, match="The team has 2 open uploads") as raised,
            places.reserve_slot("a"),
        ):
            pass
        assert raised.value.kind == "overloaded"
        assert taken(places, "c")
        open_.enter_context(places.reserve_slot("c"))
        assert not taken(places, "d")
    assert taken(places, "a")
    assert not places._open


def test_a_place_is_free_again_also_after_an_error() -> None:
    places = UploadSlots(1, 1)
    with pytest.raises(ValueError), places.reserve_slot("a"):
        raise ValueError
    assert taken(places, "b")

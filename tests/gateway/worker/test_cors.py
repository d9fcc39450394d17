"""Web pages of configured origins, as a browser asks for them: over real sockets."""

import json

import httpx
import pytest
from pydantic import ValidationError

from gateway.config.schema_server import ServerSection

PAGE = "https://app.example.com"
CHAT = "/v1/chat/completions"
BODY = {"model": "own", "messages": [{"role": "user", "content": "x"}], "max_tokens": 3}
ASKED = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-api-key,anthropic-version",
}
ALLOWED = "access-control-allow-origin"


@pytest.fixture(scope="module")
def shared(tmp_path_factory, running):
    server = {"cors_origins": [PAGE], "timeouts": {"drain_s": 1}}
    with running(tmp_path_factory.mktemp("shared"), server=server) as stack:
        yield stack


def beforehand(stack, origin: str, path: str = CHAT, **changes: str) -> httpx.Response:
    """What a browser asks before it sends what a page wants to send: without a key."""
    headers = {"origin": origin, **ASKED, **changes}
    return stack.client.options(stack.url + path, headers=headers)


def test_a_page_is_answered_beforehand_without_a_key(shared) -> None:
    paths = (CHAT, "/v1/messages", "/v1/models", "/v1/nothing", "/v2/rerank", "//v1//models/")
    for path in paths:
        answer = beforehand(shared, PAGE, path)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers[ALLOWED] == PAGE
        assert "POST" in answer.headers["access-control-allow-methods"]
        wanted = ASKED["access-control-request-headers"]
        assert answer.headers["access-control-allow-headers"] == wanted
        assert "origin" in answer.headers["vary"]
        assert answer.headers["x-request-id"].startswith("req_")


def test_a_page_may_delete_its_files(shared) -> None:
    answer = beforehand(shared, PAGE, "/v1/files/x", **{"access-control-request-method": "DELETE"})
    assert "DELETE" in answer.headers["access-control-allow-methods"].split(", ")


def test_what_a_cache_may_keep_names_the_origin_also_without_one(shared) -> None:
    """Else a program's answer, kept, would be given to a page without its header."""
    answer = shared.client.get(shared.url + "/v1/models", headers=shared.headers())
    assert (answer.status_code, answer.headers["vary"]) == (200, "origin")
    assert ALLOWED not in answer.headers


@pytest.mark.parametrize(
    "origin", ["https://other.example.com", "http://app.example.com", "null", PAGE + ".evil.org"]
)
def test_other_pages_are_not(shared, origin: str) -> None:
    answer = beforehand(shared, origin)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    sent = shared.client.post(
        shared.url + CHAT, json=BODY, headers={**shared.headers(), "origin": origin}
    )
    assert ALLOWED not in sent.headers
    assert sent.headers["vary"] == "origin"


@pytest.mark.parametrize("wanted", ["a b", "x" * 5000, "a,,b", ""])
def test_headers_that_are_none_are_not_permitted(shared, wanted: str) -> None:
    answer = beforehand(shared, PAGE, **{"access-control-request-headers": wanted})
    assert answer.status_code == 204
    assert "access-control-allow-headers" not in answer.headers


@pytest.mark.parametrize("stream", [False, True])
def test_a_page_reads_answers_and_streams(shared, stream: bool) -> None:
    headers = {**shared.headers(), "origin": PAGE}
    answer = shared.client.post(shared.url + CHAT, json={**BODY, "stream": stream}, headers=headers)
    assert answer.status_code == 200
    assert answer.headers[ALLOWED] == PAGE
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "x-breakeven-backend", "x-breakeven-decision"} <= set(exposed)
    assert {"x-ratelimit-remaining-requests", "x-ratelimit-reset-tokens"} <= set(exposed)
    assert "access-control-allow-credentials" not in answer.headers
    if stream:
        assert answer.text.endswith("data: [DONE]\n\n")


def test_a_page_reads_refusals(shared) -> None:
    """Without the header its program would see a network error."""
    for headers, status in (({}, 401), (shared.headers(), 400)):
        answer = shared.client.post(
            shared.url + CHAT, content=b"{", headers={**headers, "origin": PAGE}
        )
        assert (answer.status_code, answer.headers[ALLOWED]) == (status, PAGE)
    listed = shared.client.get(
        shared.url + "/v1/models", headers={**shared.headers(), "origin": PAGE}
    )
    assert listed.headers[ALLOWED] == PAGE


def test_what_needs_no_key_is_shown_to_no_page(shared) -> None:
    for path in ("/metrics", "/healthz", "/openapi.json"):
        answer = shared.client.get(shared.url + path, headers={"origin": PAGE})
        assert answer.status_code == 200
        assert ALLOWED not in answer.headers
        assert beforehand(shared, PAGE, path).status_code == 405


def test_programs_see_no_difference(shared) -> None:
    answer = shared.client.post(shared.url + CHAT, json=BODY, headers=shared.headers())
    assert answer.status_code == 200
    assert not {"vary", ALLOWED} & set(answer.headers)
    assert shared.client.options(shared.url + CHAT).status_code == 405


def test_without_the_setting_no_page_gets_anything(stack) -> None:
    answer = beforehand(stack, PAGE)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert ALLOWED not in answer.headers
    sent = stack.client.post(
        stack.url + CHAT, json=BODY, headers={**stack.headers(), "origin": PAGE}
    )
    assert (sent.status_code, ALLOWED in sent.headers) == (200, False)


def test_all_pages(run_stack) -> None:
    with run_stack(server={"cors_origins": ["*"], "timeouts": {"drain_s": 1}}) as stack:
        answer = beforehand(stack, "null")
        assert (answer.status_code, answer.headers[ALLOWED]) == (204, "*")


@pytest.mark.parametrize("origin", ["example.com", PAGE + "/", PAGE + "/x", "null", "", "ftp:x"])
def test_an_origin_is_written_as_browsers_write_it(origin: str) -> None:
    with pytest.raises(ValidationError):
        ServerSection(cors_origins=[origin])
    assert json.loads(ServerSection(cors_origins=[PAGE, "*"]).model_dump_json())["cors_origins"]

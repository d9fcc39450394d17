"""A gateway elsewhere: its words are told as they are, and what is none is told as such."""

import httpx
import pytest

from gateway.control.admin.gateway_address import API_KEY, TOKEN, TOKEN_COMMAND
from gateway.control.admin.overrides import DisableTargetInput, targets_disable, targets_list
from gateway.control.admin.policies import PolicyHistoryInput, policies_history
from gateway.control.admin.remote import RemoteAdmin, bearer_token, is_cleartext, remote
from gateway.control.admin.verb import NoInput, OperationRefused


def answering(answer: httpx.Response | Exception) -> tuple[RemoteAdmin, list[httpx.Request]]:
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = httpx.Client(base_url="http://there", transport=httpx.MockTransport(handle))
    return RemoteAdmin(client), asked


def test_a_question_is_a_query_and_a_change_a_body() -> None:
    desk, asked = answering(httpx.Response(200, json={"data": []}))
    assert desk.do(policies_history, PolicyHistoryInput(7)) == {"data": []}
    desk.do(targets_disable, DisableTargetInput("pool:a", note="a fan"))
    assert str(asked[0].url) == "http://there/v1/organization/policies/history?limit=7"
    assert (asked[1].method, asked[1].url.path) == ("POST", "/v1/organization/targets/disable")
    assert asked[1].content == b'{"target":"pool:a","note":"a fan"}'


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(400, json={"error": {"message": "there is no target x."}}),
         "there is no target x"),
        (httpx.Response(502, text="<html>"), "http://there returned 502 without a gateway's error"),
        (httpx.Response(302, headers={"location": "http://evil"}), "returned 302"),
        (httpx.Response(200, text="ok"), "returned 200 without a gateway's error"),
        (
            httpx.ConnectError("Connection refused"),
            "cannot reach the gateway at http://there: Connection refused",
        ),
    ],
)  # fmt: skip
def test_what_went_wrong_is_one_line(answer, words) -> None:
    desk, _ = answering(answer)
    with pytest.raises(OperationRefused, match=words):
        desk.do(targets_list, NoInput())


@pytest.mark.parametrize(
    ("url", "environ", "words"),
    [
        ("http://there", {}, f"set {API_KEY} to a key that http://there knows"),
        ("there:8080", {API_KEY: "k"}, "invalid gateway address"),
    ],
)
def test_without_a_key_or_an_address_nothing_is_asked(url, environ, words) -> None:
    with pytest.raises(OperationRefused, match=words), remote(url, environ):
        pass


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({API_KEY: "k", TOKEN: "t"}, "not both"),
        ({TOKEN: "t", TOKEN_COMMAND: "echo t"}, "not both"),
        ({TOKEN_COMMAND: "false"}, "exit status 1"),
        ({TOKEN_COMMAND: "/no/such program"}, "No such file"),
        ({TOKEN_COMMAND: "printf 'unended"}, "No closing quotation"),
        ({TOKEN_COMMAND: "true"}, "contains no token"),
        ({TOKEN_COMMAND: "printf a\\\\nb"}, "contains no token"),
        ({TOKEN: "t\u00e9"}, "contains no token"),
    ],
)
def test_a_person_s_token_is_one_word_of_one_source(environ, words) -> None:
    with pytest.raises(OperationRefused, match=words):
        bearer_token("http://there", environ)
    assert bearer_token("http://there", {TOKEN_COMMAND: "echo eyJ.a.b"}) == "eyJ.a.b"


def test_the_key_is_in_a_header_and_the_version_may_be_in_the_address() -> None:
    with remote("http://there/v1/", {API_KEY: "gw_a_b"}) as desk:
        assert str(desk._client.base_url) == "http://there"
        assert desk._client.headers["authorization"] == "Bearer gw_a_b"
        assert desk._client.follow_redirects is False


@pytest.mark.parametrize(
    ("url", "clear"),
    [
        ("http://gateway.internal:8080", True), ("http://10.0.0.7/v1", True),
        ("https://gateway.internal", False), ("http://localhost:8080", False),
        ("http://127.0.0.1:8080/v1", False), ("http://[::1]:8080", False),
        ("http://localhost.example.org", True),
    ],
)  # fmt: skip
def test_a_key_that_anybody_on_the_way_reads_is_warned_of(url, clear) -> None:
    assert is_cleartext(url) is clear


@pytest.mark.parametrize(
    ("url", "proxied"),
    [
        ("http://127.0.0.1:1", False), ("http://localhost:1", False), ("http://[::1]:1", False),
        ("http://there.example", True), ("https://there.example", True),
    ],
)  # fmt: skip
def test_a_key_for_this_machine_goes_through_no_proxy(url, proxied, monkeypatch) -> None:
    """What asks a proxy fails at once: that one is not there."""
    for name in ("NO_PROXY", "no_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with remote(url, {API_KEY: "k"}) as there:
        client = there._client
        found = client._transport_for_url(httpx.URL(url))
        assert (found is not client._transport) is proxied

"""The gateway is asked as whoever looks at that very moment; its words are told as they are."""

import httpx
import pytest

from dashboard import admin_client
from dashboard.admin_client import AdminClient, AdminRefused, AdminUnavailable
from dashboard.viewer import NotAllowed, Viewer
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import (
    GATEWAY,
    HEADER,
    KEY_FILE_VARIABLE,
    VouchedRequest,
    digest,
    verify_voucher,
)

KEY = b"k" * 32
ADA = Viewer("ada@example.com", DashboardRole.ADMIN)


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "dashboard.key"
    path.write_bytes(KEY)
    return path


@pytest.fixture
def made(key_file):
    """A desk for somebody, whose gateway answers so; and what it was asked."""
    asked: list[httpx.Request] = []

    def make(
        answer: httpx.Response | Exception, who=lambda: ADA, base: str = "http://there"
    ) -> AdminClient:
        def handle(request: httpx.Request) -> httpx.Response:
            asked.append(request)
            if isinstance(answer, Exception):
                raise answer
            return answer

        client = httpx.Client(base_url=base, transport=httpx.MockTransport(handle))
        return AdminClient(client, key_file, who)

    return make, asked


def vouched(request: httpx.Request, target: str):
    word, sent = request.headers[HEADER], VouchedRequest(request.method, target)
    return verify_voucher(KEY, word, sent, int(word.split(".")[2]))


def test_each_request_is_vouched_for_by_name(made) -> None:
    make, asked = made
    desk = make(httpx.Response(200, json={"set": 1}))
    assert desk.get("/policies/history", limit=5) == {"set": 1}
    desk.post("/policies/apply", policies="x", note=None)
    first = vouched(asked[0], "/v1/organization/policies/history?limit=5")
    assert (first.name, first.body) == (ADA.name, digest(b""))
    second = vouched(asked[1], "/v1/organization/policies/apply")
    assert asked[1].content == b'{"policies": "x"}'
    assert second.body == digest(asked[1].content)
    assert "authorization" not in asked[1].headers


def test_behind_a_prefix_the_path_is_the_gateways_own(made) -> None:
    make, asked = made
    make(httpx.Response(200, json={}), base="http://there/llm").get("/policies")
    assert asked[0].url.path == "/llm/v1/organization/policies"
    assert vouched(asked[0], "/v1/organization/policies").name == ADA.name


def test_nothing_is_asked_for_who_may_look_no_more(made) -> None:
    make, asked = made

    def nobody() -> Viewer:
        raise NotAllowed("gone")

    with pytest.raises(NotAllowed):
        make(httpx.Response(200, json={}), nobody).get("/policies")
    assert asked == []


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (httpx.Response(403, json={"error": {"message": "No.", "code": "forbidden"}}),
         AdminRefused, "No."),
        (httpx.Response(502, text="<html>"), AdminUnavailable,
         "returned 502 without a gateway's error"),
        (
            httpx.Response(302, headers={"location": "http://evil"}),
            AdminUnavailable,
            "returned 302",
        ),
        (httpx.ConnectError("refused"), AdminUnavailable, "Cannot reach the gateway at "),
    ],
)  # fmt: skip
def test_what_went_wrong_is_told(made, answer, error, words) -> None:
    make, _ = made
    with pytest.raises(error, match=words) as told:
        make(answer).get("/policies")
    if error is AdminRefused:
        assert (told.value.status, told.value.code) == (403, "forbidden")


def test_without_a_key_nothing_is_asked(made, key_file) -> None:
    make, asked = made
    key_file.unlink()
    with pytest.raises(AdminUnavailable, match="cannot be read"):
        make(httpx.Response(200, json={})).get("/policies")
    assert asked == []


def test_where_the_gateway_is_is_said_by_two_variables(key_file) -> None:
    def who() -> Viewer:
        return ADA

    both = {GATEWAY: "http://127.0.0.1:9/v1/", KEY_FILE_VARIABLE: str(key_file)}
    assert admin_client.desk(who, {GATEWAY: "x"}) is None
    assert admin_client.desk(who, {KEY_FILE_VARIABLE: "x"}) is None
    desk = admin_client.desk(who, both)
    assert desk is not None
    assert desk.viewer == ADA
    with pytest.raises(
        AdminUnavailable, match=r"Cannot reach the gateway at http://127\.0\.0\.1:9"
    ):
        desk.get("/policies")

"""Collectors that are none: an answer without end, one that trickles, one that sends on."""

import contextlib
from collections.abc import Iterator

import pytest
import requests

from gateway.telemetry.otel.collector import CollectorSession

PATIENCE_S = 20.0


@pytest.fixture
def session() -> Iterator[CollectorSession]:
    with contextlib.closing(CollectorSession()) as found:
        yield found


def sent(session: CollectorSession, there, timeout: float = PATIENCE_S) -> requests.Response:
    return session.post(there.url, data=b"spans", timeout=timeout, allow_redirects=False)


@pytest.mark.parametrize("way", ["well", "chunked"])
def test_its_status_counts_and_its_connection_is_used_again(way, session, there) -> None:
    there.way = way
    assert [sent(session, there).status_code for _ in range(3)] == [200] * 3
    assert there.connections == 1


def test_it_says_when_to_come_again(session, there) -> None:
    there.way = "busy"
    answer = sent(session, there)
    assert (answer.status_code, answer.headers["retry-after"], answer.content or b"") == (
        503, "7", b"",
    )  # fmt: skip


def test_an_answer_without_end_is_left(session, there) -> None:
    there.way = "endless"
    assert sent(session, there).status_code == 200
    assert there.left.wait(PATIENCE_S)
    assert there.sent < there.whole


def test_an_answer_that_trickles_is_not_waited_for_to_its_end(session, there) -> None:
    there.way = "trickling"
    assert sent(session, there, timeout=0.2).status_code == 200
    assert not there.over.is_set()


def test_a_redirect_is_a_failure_that_says_so(session, there) -> None:
    """The exporter takes any status below 400 for success, and drops what it meant to send."""
    there.way = "elsewhere"
    with pytest.raises(requests.TooManyRedirects, match="not followed"):
        sent(session, there)
    assert there.connections == 1


def test_a_password_of_netrc_stays_here(session, there, tmp_path, monkeypatch) -> None:
    """The control: a session of `requests` sends it, also in place of the configured header."""
    (tmp_path / "netrc").write_text("default login me password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    headers = {"authorization": "Bearer configured"}
    for item in (session, requests.Session()):
        for said in ({}, headers):
            item.post(there.url, data=b"spans", headers=said, timeout=PATIENCE_S)
    nobody, configured, *control = [who for _, who in there.asked]
    assert (nobody, configured) == (None, "Bearer configured")
    assert [str(who)[:6] for who in control] == ["Basic "] * 2


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_is_asked_for_what_is_elsewhere_alone(session, there, name, monkeypatch) -> None:
    for each_name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(each_name, raising=False)
    monkeypatch.setenv(name, there.base)
    elsewhere = "http://collector.example/v1/traces"
    here = [there.url, there.url.replace("127.0.0.1", "localhost")]
    for url in (elsewhere, *here):
        session.post(url, data=b"spans", timeout=PATIENCE_S, allow_redirects=False)
    assert [path for path, _ in there.asked] == [elsewhere, "/v1/traces", "/v1/traces"]

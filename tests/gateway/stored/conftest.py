"""Stored answers on one host with SQLite, and on two hosts with one PostgreSQL."""

import json
import shutil

import pytest

from gateway.request import request_parser


@pytest.fixture(scope="module")
def postgres_hosts(tmp_path_factory, running, postgres_server):
    """Two hosts on one ledger: what one stores, the other has."""
    ledger = {"url": postgres_server.url(postgres_server.create())}
    first, second = tmp_path_factory.mktemp("a") / "host", tmp_path_factory.mktemp("b") / "host"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.host.prepare.check_durable", lambda _: None)  # a quick server
        with running(first, ledger=ledger) as here:
            second.mkdir()
            shutil.copy(first / "pepper", second / "pepper")
            patch.setattr("deploy.once.put_started_ledger", lambda _: None)
            with running(second, ledger=ledger) as there:
                yield here, there


@pytest.fixture(params=["one host", "two hosts"])
def hosts(request):
    """Where a turn is asked, and where the next one is."""
    if request.param == "one host":
        stack = request.getfixturevalue("stack")
        return stack, stack
    return request.getfixturevalue("postgres_hosts")


@pytest.fixture
def prompts(monkeypatch):
    """The bodies of all requests that are dispatched."""
    sent, real = [], request_parser.body_for

    def record(*given, **named):
        body = real(*given, **named)
        sent.append(json.loads(body))
        return body

    monkeypatch.setattr(request_parser, "body_for", record)
    return sent

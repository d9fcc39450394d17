"""One running host for all of these files; each names its keys by itself."""

import json
from typing import Any

import httpx
import pytest

from gateway.clock import Clock
from ledger.identity.vouchers import HEADER, KEY_FILE, VouchedRequest, vouch

BUDGETS = [
    {"scope": "team:search", "usd": 50, "period": "month", "hard": True},
    {"scope": "team:ads", "usd": "0.5", "period": "day", "hard": False},
]


PEOPLE = """
[proxy]
secret_file = "proxy.secret"
[people."ada@example.com"]
role = "admin"
[people."fay@example.com"]
role = "finance"
[people."*@example.com"]
role = "viewer"
[people."eve@example.com"]
role = "viewer"
teams = ["search"]
"""


@pytest.fixture(scope="package")
def stack(running, tmp_path_factory):
    folder = tmp_path_factory.mktemp("administered")
    access = folder / "access.toml"
    access.write_text(PEOPLE)
    shown = {"access_file": str(access)}
    with running(folder, budgets=BUDGETS, dashboard=shown) as found:
        yield found


@pytest.fixture
def asked_by(stack):
    """`asked_by(name, path, body)`: as the dashboard asks for somebody; a body makes it a POST."""

    def ask(name: str | None, path: str, body: Any = None, **spoilt: Any) -> httpx.Response:
        method = "GET" if body is None else "POST"
        sent = b"" if body is None else json.dumps(body).encode()
        key = (stack.state / KEY_FILE).read_bytes()
        said = VouchedRequest(spoilt.get("method", method), spoilt.get("target", path))
        vouched = vouch(key, name, said, spoilt.get("vouched", sent), Clock().wall_us())
        headers = {HEADER: vouched}
        return stack.client.request(method, stack.url + path, content=sent, headers=headers)

    return ask

"""People sign in at a real identity provider, or come through a proxy; each sees what they may.

Streamlit's own server and `st.login` do it. A browser goes the whole way there and back; where
headers of the page's websocket matter, the test speaks to the server as a browser does.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from signed_house import FLAGS, until_it_answers
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from deploy.quietports import find_quiet_port

ROOT = Path(__file__).resolve().parents[2]
FILE = """
[auth]
redirect_uri = "{address}/oauth2callback"
cookie_secret = "a secret that is long enough for cookies"
client_id = "breakeven"
client_secret = "of no matter to this provider"
server_metadata_url = "{provider}/.well-known/openid-configuration"
[people."ada@example.com"]
role = "admin"
[people."eve@example.com"]
role = "viewer"
teams = ["search"]
"""
PEOPLE = [f"{name}@example.com" for name in ("ada", "eve", "joe")]
LIMIT_S = 120


@pytest.fixture
def start(tmp_path, month) -> Iterator:
    """Start what is asked for: a provider, and a dashboard that knows the access file."""
    running: list[subprocess.Popen] = []
    with (tmp_path / "log").open("wb") as log:

        def run(argv: list[str], url: str) -> None:
            environ = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path),
                       "BREAKEVEN_LEDGER_URL": month.url, "PYTHONWARNINGS": "default"}  # fmt: skip
            running.append(subprocess.Popen(argv, env=environ, stdout=log, stderr=log))
            until_it_answers(running[-1], url)

        yield run
        for process in running:
            process.terminate()
            process.wait(timeout=20)


def provider(start) -> str:
    port = find_quiet_port()
    users = [{"sub": item, "email": item, "email_verified": True} for item in PEOPLE]
    claims = [word for user in users for word in ("--user-claims", json.dumps(user))]
    program = str(Path(sys.executable).with_name("oidc-provider-mock"))
    address = f"http://127.0.0.1:{port}"
    start([program, "--port", str(port), *claims], f"{address}/.well-known/openid-configuration")
    return address


def dashboard(start, file: Path, port: int) -> str:
    argv = [
        sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py"),
        "--server.headless", "true", "--server.port", str(port), "--server.address",
        "127.0.0.1", "--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none",
        "--secrets.files", str(file), "--", "--access", str(file),
    ]  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    start(argv, f"{address}/_stcore/health")
    return address


class Session:
    """One tab: what the page sends, and buttons to press."""

    def __init__(self, client: httpx.Client, address: str, headers: dict[str, str]) -> None:
        client.get(f"{address}/_stcore/health")
        cookies = {named.name: named.value or "" for named in client.cookies.jar}
        said = "; ".join(f"{name}={value}" for name, value in cookies.items())
        token = cookies.get("_streamlit_xsrf", "").strip('"')
        self._socket = connect(
            f"{address.replace('http', 'ws')}/_stcore/stream",
            additional_headers={**headers, **({"Cookie": said} if said else {})},
            subprotocols=["streamlit", token] if token else ["streamlit"],
            origin=address,
            max_size=None,
            legacy=True,  # which returns the connection itself
        )
        self.text = ""
        self.login: str | None = None
        self.button = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def draw(self, press: str = "") -> str:
        """Run the page and wait until it has ended; all its words, bold or not."""
        ask = BackMsg()
        ask.rerun_script.query_string = ""
        if press:
            add = ask.rerun_script.widget_states.widgets.add()
            add.id, add.trigger_value = press, True
        self._socket.send(ask.SerializeToString())
        self.text = ""
        while True:
            message = ForwardMsg.FromString(self._socket.recv(timeout=LIMIT_S))
            kind = message.WhichOneof("type")
            self.text += str(message)
            if message.delta.new_element.button.label == "Sign in":
                self.button = message.delta.new_element.button.id
            if kind == "auth_redirect":
                self.login = message.auth_redirect.url
            if kind == "script_finished":
                return re.sub(r"</?b>", "", self.text)


@contextmanager
def signed_in(address: str, name: str) -> Iterator[httpx.Client]:
    """Presses `Sign in`, says at the provider who one is, and comes back with a cookie."""
    with httpx.Client(follow_redirects=True, timeout=LIMIT_S) as client:
        sign_in(client, address, name)
        yield client


def sign_in(client: httpx.Client, address: str, name: str) -> None:
    with Session(client, address, {}) as tab:
        tab.draw()
        tab.draw(press=tab.button)
        assert tab.login is not None, tab.text
    form = client.get(httpx.URL(address).join(tab.login))
    assert "/oauth2/authorize" in str(form.url)
    home = client.post(str(form.url), data={"sub": name})
    assert str(home.url).startswith(address), home.url


@pytest.mark.long
def test_each_sees_what_their_role_may(start, tmp_path) -> None:
    file, port = tmp_path / "access.toml", find_quiet_port()
    file.write_text(FILE.format(address=f"http://127.0.0.1:{port}", provider=provider(start)))
    address = dashboard(start, file, port)
    with signed_in(address, "ada@example.com") as ada, Session(ada, address, {}) as tab:
        words = tab.draw()
        assert "ada@example.com: admin" in words, re.findall(r"body: .*", words)
        assert "Reconciliation and audit" in words
        assert "As of " in words
    with signed_in(address, "joe@example.com") as joe, Session(joe, address, {}) as tab:
        words = tab.draw()
        assert "joe@example.com has no role here" in words
        assert "As of " not in words
    with signed_in(address, "eve@example.com") as eve, Session(eve, address, {}) as tab:
        words = tab.draw()
        assert "eve@example.com: viewer of search" in words
        assert "As of " in words
        assert not re.search(r"support|\bcoding", words)
        file.write_text(file.read_text().replace("eve@", "eva@"))
        words = tab.draw()
        assert "eve@example.com has no role here" in words, "in a tab that was open"
        assert "As of " not in words


PROXY = """
[proxy]
secret_file = "proxy.secret"
[people."ada@example.com"]
role = "finance"
"""


@pytest.mark.long
def test_a_header_is_believed_beside_the_secret_alone(start, tmp_path) -> None:
    (tmp_path / "proxy.secret").write_text("the secret of the proxy")
    file = tmp_path / "access.toml"
    file.write_text(PROXY)
    address = dashboard(start, file, find_quiet_port())
    user = {"X-Forwarded-Email": "ada@example.com"}
    for headers, said in (
        ({}, "answers through its proxy alone"),
        (user, "answers through its proxy alone"),
        ({**user, "X-Breakeven-Proxy": "a guess of the secret"}, "answers through its proxy alone"),
        ({**user, "X-Breakeven-Proxy": "the secret of the proxy"}, "ada@example.com: finance"),
        ({"X-Breakeven-Proxy": "the secret of the proxy"}, "does not say who you are"),
    ):
        with httpx.Client() as client, Session(client, address, headers) as tab:
            words = tab.draw()
        assert said in words
        assert ("As of " in words) == ("finance" in said)


@pytest.fixture
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield found
        found.close()


def arrives(browser: Browser, address: str, name: str) -> Page:
    """A person with a browser of their own: to the provider, says who they are, and back."""
    page = browser.new_context().new_page()
    page.set_default_timeout(LIMIT_S * 1000)
    page.goto(address)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/oauth2/authorize**")
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_url(f"{address}/**")
    return page


def shows(page: Page, *words: str) -> None:
    for word in words:
        expect(page.get_by_text(word).first).to_be_visible(timeout=LIMIT_S * 1000)


def hidden(page: Page, *words: str) -> None:
    for word in words:
        expect(page.get_by_text(word)).to_have_count(0)


def asked_again(page: Page) -> None:
    """Nothing but the way in is on the page."""
    expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=LIMIT_S * 1000)
    hidden(page, "As of ", "Verdict on own GPUs", "Break-even", "ada@example.com")


@pytest.mark.long
def test_a_browser_goes_to_the_provider_and_back(start, tmp_path, browser) -> None:
    """Who signs out, whose sign-in is too old, and whose cookie was changed is asked again."""
    file, port = tmp_path / "access.toml", find_quiet_port()
    says = FILE.format(address=f"http://127.0.0.1:{port}", provider=provider(start))
    file.write_text(says)
    address = dashboard(start, file, port)
    ada = arrives(browser, address, "ada@example.com")
    shows(ada, "ada@example.com: admin", "As of ", "Reconciliation and audit")
    ada.reload()
    shows(ada, "ada@example.com: admin", "As of ")
    file.write_text(says + "[oidc]\nhours = 0.0001\n")
    ada.reload()
    asked_again(ada)
    file.write_text(says)  # the control: the same cookie, and the hours that it was given
    ada.reload()
    shows(ada, "ada@example.com: admin", "As of ")
    changed = [
        {**cooky, "value": f"{cooky['value'][:-6]}AAAAAA"}
        if cooky["name"].startswith("_streamlit_user") else cooky
        for cooky in ada.context.cookies()
    ]  # fmt: skip
    assert changed != ada.context.cookies()
    stranger = browser.new_context()
    stranger.add_cookies(changed)
    other = stranger.new_page()
    other.goto(address)
    asked_again(other)
    ada.get_by_role("button", name="Sign out").click()
    ada.get_by_role("button", name="End session").click()  # at the provider, too
    ada.wait_for_url(f"{address}/**")
    asked_again(ada)
    eve = arrives(browser, address, "eve@example.com")
    shows(eve, "eve@example.com: viewer of search", "As of ")
    hidden(eve, "Reconciliation and audit", "support", "coding")
    eve.goto(f"{address}/audit?team=support")
    shows(eve, "is not for a viewer of search")
    joe = arrives(browser, address, "joe@example.com")
    shows(joe, "joe@example.com has no role here", "Sign out")
    hidden(joe, "As of ", "Verdict on own GPUs")

"""A house whose people sign in at a provider and change things over a gateway, in a browser."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from deploy.quietports import find_quiet_port
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.invoices import books as invoices
from ledger.manual_entries import entries

ROOT = Path(__file__).resolve().parents[2]
ADA, FAY, JOE, EVE = (f"{name}@example.com" for name in ("ada", "fay", "joe", "eve"))
FILE = """
[auth]
redirect_uri = "{address}/oauth2callback"
cookie_secret = "a secret that is long enough for cookies"
client_id = "breakeven"
client_secret = "of no matter to this provider"
server_metadata_url = "{provider}/.well-known/openid-configuration"
[people."ada@example.com"]
role = "admin"
[people."fay@example.com"]
role = "finance"
[people."joe@example.com"]
role = "viewer"
[people."eve@example.com"]
role = "viewer"
teams = ["search"]
"""
LIMIT_MS = 120_000
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def until_it_answers(process: subprocess.Popen, url: str) -> None:
    deadline = time.monotonic() + LIMIT_MS / 1e3
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{url} does not answer")


@dataclass
class House:
    """A provider, a gateway and a dashboard; `access`: who may what, as the dashboard reads it."""

    address: str
    access: Path
    gateway: Any
    browser: Browser

    def arrives(self, name: str, path: str = "", size: Any = None) -> Page:
        page = self.browser.new_context(viewport=size).new_page()
        page.set_default_timeout(LIMIT_MS)
        page.goto(f"{self.address}?live=false")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/oauth2/authorize**")
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_url(f"{self.address}/**")
        shows(page, name)
        goes(page, self.address, path)
        return page

    def entered(self, kind: str) -> list[str]:
        with self.gateway.engine.connect() as connection:
            return [f"{entry.name} by {entry.actor}" for entry in entries(connection, kind)]

    def bills(self) -> list[invoices.ImportedInvoice]:
        with self.gateway.engine.connect() as connection:
            return invoices.list_invoices(connection)


@contextmanager
def open_house(gateway: Any, chromium: Path, state: Path) -> Iterator[House]:
    """A dashboard over a gateway, with a provider; all of it is stopped at the end."""
    expect.set_options(timeout=LIMIT_MS)
    port, asked = find_quiet_port(), find_quiet_port()
    address, provider = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{asked}"
    access = state / "access.toml"
    access.write_text(FILE.format(address=address, provider=provider))
    users = [{"sub": item, "email": item, "email_verified": True} for item in (ADA, FAY, JOE, EVE)]
    claims = [word for user in users for word in ("--user-claims", json.dumps(user))]
    program = str(Path(sys.executable).with_name("oidc-provider-mock"))
    environ = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(state), GATEWAY: gateway.address,
        "BREAKEVEN_LEDGER_URL": gateway.url, KEY_FILE_VARIABLE: str(gateway.state / KEY_FILE),
    }  # fmt: skip
    dashboard = [
        sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py"),
        "--server.headless", "true", "--server.port", str(port), "--server.address", "127.0.0.1",
        "--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none",
        "--secrets.files", str(access), "--", "--access", str(access),
    ]  # fmt: skip
    running = []
    with (state / "log").open("wb") as log:
        for argv, answers in (
            (
                [program, "--port", str(asked), *claims],
                f"{provider}/.well-known/openid-configuration",
            ),
            (dashboard, f"{address}/_stcore/health"),
        ):
            running.append(subprocess.Popen(argv, env=environ, stdout=log, stderr=log))
            until_it_answers(running[-1], answers)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            yield House(address, access, gateway, browser)
            browser.close()
        for process in running:
            process.terminate()
            process.wait(timeout=20)


def goes(page: Page, address: str, path: str) -> None:
    page.goto(f"{address}/{path}?live=false&period=7+d")


def shows(page: Page, *words: str) -> None:
    for word in words:
        expect(page.get_by_text(word).first).to_be_visible()


def types(page: Page, **said: str) -> None:
    """Into fields by their labels, `_` for a blank."""
    for label, text in said.items():
        field = page.get_by_label(label.replace("_", " "), exact=False).first
        field.fill(text)
        field.press("Tab")


def presses(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def gives(page: Page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "text/csv", "buffer": content}
    page.get_by_test_id("stFileUploader").locator("input").set_input_files([file])
    shows(page, name)

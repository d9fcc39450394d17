"""Client of the gateway's admin API for one viewer; the dashboard's only writer.

An `AdminClient` looks up its viewer before each request and vouches for the name only
(`ledger.identity.vouchers`). The gateway decides what the viewer may do, and its error text is
shown.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import streamlit as st

from dashboard.viewer import Viewer, Who
from ledger.identity.secretfile import read_secret
from ledger.identity.vouchers import GATEWAY, HEADER, KEY_FILE_VARIABLE, VouchedRequest, vouch

PREFIX = "/v1/organization"
TIMEOUT_S = 20.0
HOW = (
    f"Started by `breakeven serve`, the dashboard knows its gateway. One that is started by itself "
    f"is told by two variables: `{GATEWAY}`, the gateway's address, and `{KEY_FILE_VARIABLE}`, a "
    "copy of the file `dashboard.key` in the gateway's state directory "
    "(docs/how-to/dashboard-access.md)."
)
UNHEARD = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LOCAL = ("127.0.0.1", "localhost", "::1")


class AdminUnavailable(Exception):
    """The gateway could not be reached; the text says why. `heard`: the request may have run."""

    def __init__(self, words: str, *, heard: bool = False) -> None:
        super().__init__(words)
        self.heard = heard


class AdminRefused(Exception):
    """The gateway refused; the text, `status` and `code` are its own."""

    def __init__(self, words: str, status: int, code: str | None) -> None:
        super().__init__(words)
        self.status = status
        self.code = code


class AdminClient:
    def __init__(self, client: httpx.Client, key_file: Path, who: Who) -> None:
        self._client = client
        self._key_file = key_file
        self._who = who

    @property
    def viewer(self) -> Viewer:
        return self._who()

    def get(self, path: str, *, within_s: float = TIMEOUT_S, **query: str | int) -> dict[str, Any]:
        """Send a GET. Raises `AdminRefused`, `AdminUnavailable`, or, without viewer, `NotAllowed`.

        Returns the decoded answer.
        """
        return self._send_request(
            self._client.build_request("GET", PREFIX + path, params=query, timeout=within_s), b""
        )

    def delete(self, path: str, **query: str | int) -> dict[str, Any]:
        """Send a DELETE and return the decoded answer."""
        return self._send_request(
            self._client.build_request("DELETE", PREFIX + path, params=query), b""
        )

    def post(self, path: str, **given: Any) -> dict[str, Any]:
        """Send a POST and return the decoded answer; members that are `None` are omitted."""
        said = {name: value for name, value in given.items() if value is not None}
        body = json.dumps(said).encode()
        headers = {"content-type": "application/json"}
        return self._send_request(
            self._client.build_request("POST", PREFIX + path, content=body, headers=headers), body
        )

    def _send_request(self, request: httpx.Request, body: bytes) -> dict[str, Any]:
        name, key = self._who().name, read_secret(self._key_file)
        if key is None:
            raise AdminUnavailable(f"{self._key_file} cannot be read or is not a key.")
        target = request.url.raw_path.decode("ascii")
        asked = VouchedRequest(
            request.method, target[target.index(PREFIX) :]
        )  # a proxy may have a prefix
        request.headers[HEADER] = vouch(key, name, asked, body, time.time_ns() // 1000)
        try:
            answer = self._client.send(request)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            heard = not isinstance(error, UNHEARD)
            words = f"Cannot reach the gateway at {self._client.base_url}: {why}."
            raise AdminUnavailable(words, heard=heard) from error
        return _parse_answer(answer)


def desk(who: Who, environ: Mapping[str, str] = os.environ) -> AdminClient | None:
    """Return the admin client, or `None` if gateway address or key file are not set."""
    key_file = environ.get(KEY_FILE_VARIABLE)
    if not environ.get(GATEWAY) or not key_file:
        return None
    return AdminClient(_client(address(environ)), Path(key_file), who)


def address(environ: Mapping[str, str] = os.environ) -> str:
    """Return the gateway's address without `/v1`; by default that of a first start."""
    url = environ.get(GATEWAY) or "http://127.0.0.1:8080"
    return url.rstrip("/").removesuffix("/v1")


@st.cache_resource(max_entries=2)
def _client(url: str) -> httpx.Client:
    """Return the HTTP client of all sessions; this machine is reached without a proxy."""
    outside = urlsplit(url).hostname not in LOCAL
    none_kept = httpx.Limits(max_keepalive_connections=0)  # a cache lets go of it without a word
    return httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=outside, limits=none_kept)


def _parse_answer(answer: httpx.Response) -> dict[str, Any]:
    try:
        document: dict[str, Any] = answer.json()
        if answer.is_success:
            return document
        error = document["error"]
        words, code = str(error["message"]), error["code"]
    except (ValueError, KeyError, TypeError):
        raise AdminUnavailable(
            f"{answer.request.url.host} returned {answer.status_code} without a "
            "gateway's error. Check the gateway's address.",
            heard=True,
        ) from None
    raise AdminRefused(words, answer.status_code, code)

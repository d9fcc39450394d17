"""Client of a remote gateway, with a key or a person's token: the same operations.

A token of the identity provider is in `BREAKEVEN_TOKEN`, or is printed by the command in
`BREAKEVEN_TOKEN_COMMAND`, usually the identity provider's own program.
"""

import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from gateway.control.admin.gateway_address import API_KEY, TOKEN, TOKEN_COMMAND
from gateway.control.admin.verb import PREFIX, AdminOperation, OperationRefused

TIMEOUT_S = 60.0
COMMAND_S = 300.0  # the person may have to sign in
G = TypeVar("G", bound=msgspec.Struct)


class RemoteAdmin:
    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def do(self, verb: AdminOperation[G], given: G) -> dict[str, Any]:
        """Return the gateway's answer. Raises `OperationRefused` with its error text."""
        said = {
            name: value for name, value in msgspec.to_builtins(given).items() if value is not None
        }
        sent: dict[str, Any] = {"params": said} if verb.in_query else {"json": said}
        try:
            answer = self._client.request(verb.method, PREFIX + verb.path, **sent)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            raise OperationRefused(
                f"cannot reach the gateway at {self._client.base_url}: {why}"
            ) from error
        return self._read(answer)

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            document: dict[str, Any] = answer.json()
            if answer.is_success:
                return document
            words = str(document["error"]["message"])
        except (ValueError, KeyError, TypeError):
            url = self._client.base_url
            raise OperationRefused(
                f"{url} returned {answer.status_code} without a gateway's error: check that "
                "--gateway names a gateway"
            ) from None
        raise OperationRefused(_phrase(words))


def _phrase(sentence: str) -> str:
    """Return a gateway's sentence as the command line prints it: `refusals` turned it into one."""
    start = sentence.partition(" ")[0]
    small = start.isalpha() and start == start.capitalize()
    return (start.lower() if small else start) + sentence.removeprefix(start).removesuffix(".")


def is_cleartext(url: str) -> bool:
    """Return whether the key would cross a network unencrypted: plain HTTP to another host."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname in (None, "localhost"):
        return False
    try:
        return not ip_address(str(parts.hostname)).is_loopback
    except ValueError:
        return True


def bearer_token(url: str, environ: Mapping[str, str]) -> str:
    """Return the credential from one of three variables. Raises `OperationRefused`."""
    named = [name for name in (API_KEY, TOKEN, TOKEN_COMMAND) if environ.get(name)]
    if not named:
        raise OperationRefused(
            f"set {API_KEY} to a key that {url} knows, or {TOKEN} or {TOKEN_COMMAND} to a token of "
            "your sign-in"
        )
    if len(named) > 1:
        raise OperationRefused(f"set {named[0]} or {named[1]}, not both: each names the caller")
    said = environ[named[0]]
    found = (_run_token_command(said) if named[0] == TOKEN_COMMAND else said).strip()
    if not (found.isascii() and found.isprintable() and found):
        raise OperationRefused(
            f"{named[0]} contains no token: its value must be one line of printable ASCII"
        )
    return found


def _run_token_command(command: str) -> str:
    """Return the output of the token command; its error output goes to the terminal."""
    try:
        done = subprocess.run(  # noqa: S603 - the person's own command, as they wrote it; no shell
            shlex.split(command), stdout=subprocess.PIPE, check=True, timeout=COMMAND_S, text=True
        )
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        why = f"exit status {error.returncode}" if hasattr(error, "returncode") else str(error)
        raise OperationRefused(f"{TOKEN_COMMAND}: the command `{command}` failed: {why}") from error
    return done.stdout


@contextmanager
def remote(url: str, environ: Mapping[str, str]) -> Iterator[RemoteAdmin]:
    """Yield a client for `url`, with or without `/v1`. Raises `OperationRefused` if invalid."""
    base = url.rstrip("/").removesuffix("/v1")
    if not base.startswith(("http://", "https://")):
        raise OperationRefused(
            f"invalid gateway address `{url}`: write http://HOST:PORT or https://HOST"
        )
    headers = {"authorization": f"Bearer {bearer_token(url, environ)}"}
    try:
        # Plain HTTP to this machine must not send its key to a proxy of the environment.
        proxied = urlsplit(base).scheme != "http" or is_cleartext(base)
        client = httpx.Client(base_url=base, headers=headers, timeout=TIMEOUT_S, trust_env=proxied)
    except (httpx.InvalidURL, ValueError) as error:
        raise OperationRefused(f"invalid gateway address `{url}`: {error}") from error
    with client:
        yield RemoteAdmin(client)

"""Run in a network of its own (`unshare -rnm`): canaries on every address that nobody may reach.

    unshare -rnm .venv/bin/python tests/security/inside.py [--broken] [--gateway]

Each form of `urls.forms` is a target's base address, for the request path's client and for httpx;
with `--gateway` it stands in every place of a request that could name an address, and the gateway
may connect to none at all: nothing is fetched for a client. Prints one JSON object.
"""

import argparse
import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx
import nameserver
import parts
import urls

from backends import address_policy
from backends.base import Deadlines
from backends.errors import BackendError
from backends.http import HttpClient
from backends.origin import Origin
from backends.pinned import PinnedTransport
from gateway.fleet import fleet
from gateway.http.member_rules import DENIED

PORT = 8080
SHORT = Deadlines(connect_s=2.0, head_s=1.0, idle_s=1.0)
REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
SAYS = b"HTTP/1.1 307 There\r\nlocation: http://10.0.0.7:%d/\r\ncontent-length: 0\r\n\r\n" % PORT


class Canaries:
    """Listeners; whoever connects is counted, and sent on to another."""

    def __init__(self) -> None:
        self.met: list[str] = []

    async def start(self) -> None:
        for address in (*urls.V4, *urls.V6, urls.PUBLIC):
            await asyncio.start_server(self._meet, address, PORT)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met.append(writer.get_extra_info("sockname")[0])
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(SAYS)
            await writer.drain()
        writer.close()


def ground() -> None:
    """The addresses are this namespace's own, and its resolver asks our server alone."""
    run = ["ip", "link", "set", "lo", "up"]
    subprocess.run(run, check=True)
    for address in (*urls.V4[2:], urls.PUBLIC):
        subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    for address in urls.V6[1:]:
        command = ["ip", "-6", "addr", "add", f"{address}/128", "dev", "lo", "nodad"]
        subprocess.run(command, check=True)
    for path, text in (
        ("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
        ("/etc/nsswitch.conf", "hosts: files dns\n"),
    ):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(text)
        subprocess.run(["mount", "--bind", file.name, path], check=True)


def stands_in_the_file(form: str) -> bool:
    """An operator who writes a private address in plain digits means it: no trick."""
    try:
        host = Origin.parse(form)[0].host
    except ValueError:
        return False
    address = address_policy.parse_address(host)
    return address is not None and address_policy.PUBLIC.is_refused(address, stated=True) is None


async def by_target(form: str) -> None:
    try:
        origin, _ = Origin.parse(form)
    except ValueError:
        return
    client = HttpClient()
    with suppress(BackendError):
        await (await client.open(origin, REQUEST, SHORT)).aclose()
    await client.aclose()


async def by_httpx(form: str, tls: ssl.SSLContext) -> None:
    try:
        Origin.parse(form)  # as every base address is before a client has it
    except ValueError:
        return
    transport = PinnedTransport(address_policy.PUBLIC, tls=tls)
    async with httpx.AsyncClient(transport=transport, timeout=2.0) as client:
        with suppress(httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError):
            await client.get(form)


async def by_targets(canaries: Canaries, *, broken: bool) -> tuple[int, int]:
    """Forms tried, and canaries met: a public address is what a target may have."""
    tls = ssl.create_default_context()
    if broken:
        address_policy.AddressPolicy.is_refused = lambda *_, **__: None
    tried = [form for form in urls.forms(PORT) if broken or not stands_in_the_file(form)]
    for form in tried:
        await by_target(form)
        await by_httpx(form, tls)
    return len(tried), len([item for item in canaries.met if item != urls.PUBLIC])


def asked(stack: Any, form: str) -> int:
    """Every place of a request that could name an address; how many the gateway answered."""
    picture = [{"type": "image_url", "image_url": {"url": form}}]
    typed = [{"type": "input_image", "image_url": form}]
    source = [{"type": "image", "source": {"type": "url", "url": form}}]
    heard = [{"type": "input_audio", "input_audio": {"url": form}}]
    members = dict.fromkeys(sorted(DENIED - {"headers", "extra_headers"}), form)
    members |= {"headers": {"host": form}, "extra_headers": {"x-forwarded-host": form}}
    tried = [stack.chat("api", max_tokens=1, **members), stack.chat(f"alpha/{form}", max_tokens=1)]
    for model in ("own", "api", "lite"):
        for content in (picture, heard):
            message = [{"role": "user", "content": content}]
            tried.append(stack.chat(model, messages=message, max_tokens=1))
        spoken = {"model": model, "input": [{"role": "user", "content": typed}]}
        tried.append(stack.post("/v1/responses", spoken))
        said = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": source}]}
        tried.append(stack.post("/v1/messages", said))
    return sum(response.status_code < 500 for response in tried)


def by_requests(folder: str, *, broken: bool) -> tuple[int, int]:
    """Requests that were answered, of those that were made; with a provider behind LiteLLM."""
    if broken:
        fleet._stands_outside = lambda *_: True

    def with_litellm(found: dict[str, Any], ports: dict[str, int]) -> None:
        base = f"http://127.0.0.1:{ports['alpha']}"
        found["providers"]["lite"] = {
            "kind": "litellm", "litellm_prefix": "ollama", "base_url": base, "simulated": True,
            "prices_as": "openai/gpt-4o-mini",
        }  # fmt: skip
        found["models"]["lite"] = {"targets": ["lite/m"]}

    # What is fetched then is a public address: LiteLLM looks at private ones by itself.
    forms = [f"http://{urls.PUBLIC}:{PORT}/{number}.png" for number in range(3)]
    with parts.Stack(Path(folder), {"adjust": with_litellm}) as stack:
        each = [asked(stack, form) for form in (forms if broken else urls.forms(PORT))]
    return len(each), sum(each)


async def watched(given: argparse.Namespace) -> dict[str, int]:
    canaries = Canaries()
    await nameserver.serve()
    await canaries.start()
    if not given.gateway:
        tried, met = await by_targets(canaries, broken=given.broken)
        return {"forms": tried, "met": met}
    with tempfile.TemporaryDirectory() as folder:
        tried, served = await asyncio.to_thread(by_requests, folder, broken=given.broken)
    return {"forms": tried, "requests": served, "met": len(canaries.met)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broken", action="store_true", help="nothing is judged: the control")
    parser.add_argument("--gateway", action="store_true", help="in requests, not as targets")
    given = parser.parse_args()
    ground()
    print(json.dumps(asyncio.run(watched(given))))


if __name__ == "__main__":
    main()

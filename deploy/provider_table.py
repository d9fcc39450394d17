"""Observed requests of LiteLLM for each provider name: `python -m deploy.provider_table`.

Each name is called through the adapter, in this process and without a network. The captured request
shows the provider's address, the variables that hold its key, and how a request is changed. A name
needs no adapter if its request is a chat completion, apart from changes that `Quirks` can make.
`backends/provider_table.json` holds the observations and the release of LiteLLM that they are of.
"""

import asyncio
import importlib
import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import httpx

from backends.base import Call, Deadlines
from backends.errors import BackendError
from backends.exchange import read_all
from backends.litellm import LiteLLMBackend, load
from backends.openai import Credentials
from backends.provider_refusals import REFUSED
from backends.secret import Secret

WRITTEN: Final = Path(__file__).resolve().parents[1] / "backends" / "provider_table.json"
COMMAND: Final = "python -m deploy.provider_table"
KEY: Final = "sk-0123456789abcdef0123456789abcdef"
PLACE: Final = "http://probe.example/base"
_PATH: Final = "/chat/completions"
_CALL_S: Final = 20
_ANSWER_BYTES: Final = 100_000
_TURNS: Final = 40
_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_CALLED = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PLAIN: Final[dict[str, Any]] = {
    "messages": [{"role": "user", "content": "hello there my friend"}], "model": "some-model",
    "max_tokens": 20,
}  # fmt: skip
# Each value is unique: a member that a provider renames is recognised by its value.
RICH: Final[dict[str, Any]] = {
    "messages": [
        {"role": "system", "content": "be short"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [_CALLED]},
        {"role": "tool", "tool_call_id": "call_1", "content": "4"},
        {"role": "user", "content": "go on"},
    ],
    "model": "some-model", "max_completion_tokens": 21, "temperature": 2.0, "top_p": 0.93,
    "stop": ["STOP"], "presence_penalty": 0.11, "frequency_penalty": 0.12, "seed": 7,
    "user": "somebody", "tools": [_TOOL], "tool_choice": "auto", "parallel_tool_calls": False,
    "logit_bias": {"5": 3},
}  # fmt: skip
# LiteLLM drops these for names whose models it does not know. A request that needs them is only
# sent to targets that declare them.
_DECLARED: Final = frozenset({"tools", "tool_choice"})
_ANSWER = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "Hello"}}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}  # fmt: skip
_SECRET_WORDS = ("KEY", "TOKEN")
_CAP: Final = "max_completion_tokens"
_HOTTEST: Final = 2.0
_OF_STREAMS: Final = ("stream", "stream_options")
# The default address of LiteLLM's SDK. Prompts for another provider must not be sent there.
_ASSUMED: Final = "https://api.openai.com/"
OPENAI: Final = "openai"
# Providers that document chat completions (2026-11), though LiteLLM's request does not show it:
# LiteLLM bypasses its own clients, drops the token limit, or cannot read their streams.
STATED: Final[Mapping[str, Mapping[str, Any]]] = {
    "aiohttp_openai": {}, "openai_like": {}, "vllm": {}, "oobabooga": {"path": "/v1"},
    "amazon_nova": {"base_url": "https://api.nova.amazon.com/v1", "keys": ["AMAZON_NOVA_API_KEY"]},
    "maritalk": {"base_url": "https://chat.maritaca.ai/api", "keys": ["MARITALK_API_KEY"]},
    "morph": {"base_url": "https://api.morphllm.com/v1", "keys": ["MORPH_API_KEY"]},
    "v0": {"base_url": "https://api.v0.dev/v1", "keys": ["V0_API_KEY"]},
}  # fmt: skip
# The requests of these names depend on the address, the model or the credentials.
_ADAPTED: Final = frozenset({
    "azure_ai", "bedrock_mantle", "databricks", "huggingface", "snowflake",
})  # fmt: skip
log = logging.getLogger(__name__)


class CapturedRequests:
    """A transport that stores each outgoing request and answers it with a chat completion."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(200, json=_ANSWER)


class ReadVariables(dict[str, str]):
    """An environment that records the names of the variables that are read."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.names: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.names.append(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.names.append(name)
        return super().__getitem__(name)

    def copy(self) -> dict[str, str]:
        return dict(self)


@contextmanager
def _environment() -> Iterator[ReadVariables]:
    """Replace `os.environ` by an environment without variables for keys or addresses."""
    kept, read = os.environ, ReadVariables({"HOME": "/nonexistent", "PATH": "/usr/bin"})
    os.environ = cast("Any", read)  # noqa: B003  (LiteLLM is to read this object, no process)
    try:
        yield read
    finally:
        os.environ = kept  # noqa: B003  (the process's own again)


async def _send(
    name: str,
    body: Mapping[str, Any],
    *,
    key: str | None,
    place: str | None,
    stream: bool = False,
) -> list[httpx.Request]:
    """Return the requests that LiteLLM would have sent; an empty list if it sends none."""
    backend, sent = LiteLLMBackend(name, _proof(key), base_url=place), CapturedRequests()
    backend.adopt(importlib.import_module("litellm"), httpx.MockTransport(sent))
    deadlines = Deadlines(head_s=_CALL_S)
    call = Call(_PATH, json.dumps(body).encode(), stream=stream, deadlines=deadlines)
    try:
        await read_all(await backend.open(call), _ANSWER_BYTES)
    except BackendError:
        pass
    except Exception as error:  # noqa: BLE001  (only what it sent is wanted; adapters fail at the answer in their own ways)
        logging.getLogger(__name__).debug("%s: %s", name, type(error).__name__)
    for _ in range(_TURNS):  # LiteLLM's later callbacks also read variables of this name
        await asyncio.sleep(0)
    return sent.requests


def _proof(key: str | None) -> Credentials:
    return Credentials(None if key is None else Secret(key))


def _body(request: httpx.Request) -> Any:
    try:
        return json.loads(request.content)
    except ValueError:
        return None


class NotChat(ValueError):
    """A request that `Quirks` cannot make; the message says why."""


def quirks_of(request: httpx.Request, given: Mapping[str, Any] = RICH) -> dict[str, Any]:
    """Return the changes that LiteLLM made to a request that was sent to `PLACE`.

    Raises `NotChat` when `Quirks` cannot make them.
    """
    url, body = str(request.url), _body(request)
    if not url.startswith(PLACE) or not url.endswith(_PATH) or not isinstance(body, dict):
        raise NotChat(f"it went to {url}")
    path = url.removeprefix(PLACE).removesuffix(_PATH)
    quirks: dict[str, Any] = {"path": path} if path else {}
    quirks |= _key_headers(request) | _messages_quirks(body.get("messages"))
    if body.get("temperature", _HOTTEST) != _HOTTEST:
        quirks["temperature_max"] = body["temperature"]
    added = {name: value for name, value in body.items() if name not in (*given, *_OF_STREAMS)}
    renames = {
        name: word
        for name, value in given.items()
        if name not in body
        for word in [word for word, other in added.items() if other == value]
    }
    kept = {name for name in given if name in body} - {"messages", "temperature"}
    if changed := sorted(name for name in kept if body[name] != given[name]):
        raise NotChat(f"other values: {', '.join(changed)}")
    if new := sorted(word for word in added if word not in renames.values() and added[word]):
        raise NotChat(f"further members: {', '.join(new)}")
    lost = {*given} - {*body} - {*renames} - _DECLARED
    return quirks | {"renames": renames, "leaves_out": sorted(lost)}


def _key_headers(request: httpx.Request) -> dict[str, Any]:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        raise NotChat("its key is not in `authorization`")
    other = [name for name, value in request.headers.items()
             if KEY in value and name != "authorization"]  # fmt: skip
    return {"key_headers": other} if other else {}


def _messages_quirks(messages: Any) -> dict[str, Any]:
    if not isinstance(messages, list) or len(messages) != len(RICH["messages"]):
        raise NotChat("other messages")
    joins = False
    for given, sent in zip(RICH["messages"], messages, strict=True):
        is_joined = isinstance(given["content"], list) and sent.get("content") == "ab"
        joins = joins or is_joined
        left = {**sent, "content": given["content"]} if is_joined else sent
        if {"content": None, **left} != {"content": None, **given}:
            raise NotChat(f"another message of {given['role']}")
    return {"joins_texts": True} if joins else {}


def _home(name: str, requests: list[httpx.Request]) -> str | None:
    """Return the provider's HTTPS base URL. `None` for other URLs and LiteLLM's default."""
    if not requests:
        return None
    url = str(requests[-1].url).partition("?")[0]
    if not url.startswith("https://") or not url.endswith(_PATH):
        return None
    if url.startswith(_ASSUMED) and name != OPENAI:
        return None
    return url.removesuffix(_PATH)


async def _quirks(name: str) -> dict[str, Any] | None:
    """Return the quirks of a name, `None` if the adapter is needed."""
    streamed = await _send(name, RICH, key=KEY, place=PLACE, stream=True)
    if len(streamed) != 1:
        return None
    try:
        quirks = quirks_of(streamed[-1])
        lost = set(quirks["leaves_out"])
        if _CAP in lost:  # an answer without a token limit has no maximum cost
            older = {name: value for name, value in RICH.items() if name != _CAP}
            older["max_tokens"] = RICH[_CAP]
            sent = await _send(name, older, key=KEY, place=PLACE)
            lost = lost - {_CAP} | set(quirks_of(sent[-1], older)["leaves_out"])
            if "max_tokens" in lost:
                log.info("%s: no cap", name)
                return None
            quirks["renames"][_CAP] = "max_tokens"
    except NotChat as reason:
        log.info("%s: %s", name, reason)
        return None
    if "stream_options" not in _body(streamed[-1]):
        lost.add("stream_options")
    return quirks | {"leaves_out": sorted(lost)}


async def observe(name: str) -> dict[str, Any]:
    """Return the table's entry for one provider name."""
    if name in STATED:
        return {"speaks": "chat", **STATED[name]}
    quirks = None if name in _ADAPTED else await _quirks(name)
    with _environment() as read:
        await _send(name, PLAIN, key=None, place=None)
    keys = [variable for variable in dict.fromkeys(read.names)
            if any(word in variable for word in _SECRET_WORDS)
            and not variable.endswith(("FILE", "PATH"))]  # fmt: skip
    if quirks is None:
        return {"keys": keys}
    with _environment():
        home = _home(name, await _send(name, PLAIN, key=KEY, place=None))
    return {"speaks": "chat", "base_url": home, "keys": keys, **quirks}


async def observe_all() -> dict[str, Any]:
    """Return the whole table. `keys` lacks variables that LiteLLM reads for many names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm = load()
        registry = importlib.import_module("litellm.llms.openai_like.json_loader")
        names = sorted({str(getattr(name, "value", name)) for name in litellm.provider_list}
                       | {*registry.JSONProviderRegistry.list_providers()})  # fmt: skip
        litellm.sync_transport = httpx.MockTransport(CapturedRequests())
        logging.getLogger("breakeven.litellm").disabled = True
        logging.getLogger("httpx").disabled = True
        entries = {name: await observe(name) for name in names if name not in REFUSED}
    shared = _common(entries)
    for entry in entries.values():
        if "keys" in entry:
            entry["keys"] = [key for key in entry["keys"] if key not in shared]
    entries[OPENAI]["keys"] = ["OPENAI_API_KEY"]  # LiteLLM reads it for every name
    return {"litellm": version("litellm"), "providers": entries}


def _common(entries: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    read = [variable for entry in entries.values() for variable in entry.get("keys", ())]
    return frozenset(variable for variable in read if read.count(variable) > len(entries) // 4)


def text(table: Mapping[str, Any]) -> str:
    """Return the text of the table's file, one line for each name."""
    rows = ",\n".join(
        f"    {json.dumps(name)}: {json.dumps({k: v for k, v in entry.items() if v})}"
        for name, entry in table["providers"].items()
    )
    return (
        f'{{\n  "litellm": {json.dumps(table["litellm"])},\n  "providers": {{\n{rows}\n  }}\n}}\n'
    )


def main() -> None:
    """Write the table. Log why a name needs the adapter."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    WRITTEN.write_text(text(asyncio.run(observe_all())), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Answers of chat, as targets give them, and the ways a stream may be cut."""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from backends.litellm import load

sys.path.insert(0, str(Path(__file__).parent))

from messages_upstream import ANSWER, FAILING, PRICE, WHOLE, MessagesUpstream

USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 12,
    "total_tokens": 42,
    "prompt_tokens_details": {"cached_tokens": 20},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


def chunk(**choice: Any) -> dict[str, Any]:
    return {"id": "c1", "model": "m1", "choices": [{"index": 0, **choice}]}


@pytest.fixture(scope="session")
def litellm() -> None:
    """Import it ahead: on a busy machine that takes longer than a test waits for its host."""
    load()


@pytest.fixture(scope="session")
def stream_of() -> Callable[..., bytes]:
    """`stream_of(delta, ..., finish="stop")`: chat's event stream with these deltas."""

    def write(*deltas: dict[str, Any], finish: str = "stop", **last: Any) -> bytes:
        chunks = [chunk(delta={"role": "assistant", "content": ""})]
        chunks += [chunk(delta=delta) for delta in deltas]
        chunks.append(chunk(delta={}, finish_reason=finish, **last))
        chunks.append({"id": "c1", "model": "m1", "choices": [], "usage": USAGE})
        events = [b"data: %b\n\n" % json.dumps(each_chunk).encode() for each_chunk in chunks]
        return b"".join([*events, b"data: [DONE]\n\n"])

    return write


@pytest.fixture(scope="session")
def answer_of() -> Callable[..., bytes]:
    """`answer_of(message, finish="stop")`: a chat completion."""

    def write(message: dict[str, Any], finish: str = "stop", **more: Any) -> bytes:
        choice = {"index": 0, "message": message, "finish_reason": finish, **more}
        return json.dumps({"model": "m1", "choices": [choice], "usage": USAGE}).encode()

    return write


@pytest.fixture(scope="session")
def events() -> Callable[[bytes], list[dict[str, Any]]]:
    """The documents of a named event stream."""

    def read(stream: bytes) -> list[dict[str, Any]]:
        found = []
        for part in stream.decode().split("\n\n")[:-1]:
            name, _, data = part.partition("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {found[-1]['type']}"
        return found

    return read


ARGUMENTS = st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.integers(), max_size=3)


@st.composite
def _deltas(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An answer: thoughts, texts and calls in any order, each in any number of parts."""
    deltas: list[dict[str, Any]] = []
    calls = 0
    for kind in draw(st.lists(st.sampled_from(("reasoning", "content", "calls")), max_size=5)):
        if kind != "calls":
            deltas += [{kind: part} for part in draw(st.lists(st.text(max_size=8), max_size=4))]
            continue
        written = []
        for _ in range(draw(st.integers(1, 3))):
            text = json.dumps(draw(ARGUMENTS))
            cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
            parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
            head = {"index": calls, "id": f"call_{calls}", "type": "function"}
            function = {"name": f"f{calls}", "arguments": ""}
            written.append(
                [
                    {**head, "function": function},
                    *({"index": calls, "function": {"arguments": part}} for part in parts),
                ]
            )
            calls += 1
        # Interleaved: every call keeps its own order.
        while any(written):
            this_draw = draw(st.sampled_from([parts for parts in written if parts]))
            deltas.append({"tool_calls": [this_draw.pop(0)]})
    return deltas


@pytest.fixture(scope="session")
def answers() -> st.SearchStrategy[list[dict[str, Any]]]:
    return _deltas()


@pytest.fixture(scope="module")
def shared_upstream() -> Iterator[MessagesUpstream]:
    with MessagesUpstream() as upstream:
        yield upstream


@pytest.fixture
def upstream(shared_upstream: MessagesUpstream) -> MessagesUpstream:
    """The server of the module, as it was made."""
    shared_upstream.asked.clear()
    shared_upstream.left.clear()
    shared_upstream.stream, shared_upstream.status = list(ANSWER), 200
    shared_upstream.whole, shared_upstream.headers = json.dumps(WHOLE).encode(), {}
    shared_upstream.hangs = False
    return shared_upstream


@pytest.fixture(scope="module")
def spoken(running: Any, tmp_path_factory: Any, shared_upstream: MessagesUpstream) -> Iterator[Any]:
    """A gateway with a target that speaks Messages, and one that searches for a fee."""
    state = tmp_path_factory.mktemp("spoken")
    (state / "api.key").write_text("key-of-ours")
    (state / "api.key").chmod(0o600)
    names = ("claude", "searching", "told", "cheap", *FAILING)
    prices = {f"{name}/m": PRICE for name in names}
    prices["cheap/m"] = {"usd_per_million": {"input": 0.001, "output": 0.001}}
    listed = {"source": "test", "source_date": date(2026, 11, 1), "prices": prices}
    (state / "prices.yaml").write_text(yaml.safe_dump(listed))
    claude = {
        "kind": "anthropic",
        "base_url": shared_upstream.url,
        "api_key_file": str(state / "api.key"),
        "on_disconnect": "stops",
    }
    hosted = ["tools", "json_schema", "images", "reasoning", "hosted_tools"]

    def adjust(found: dict[str, Any], _: dict[str, int]) -> None:
        found["prices"] = [str(state / "prices.yaml")]
        found["providers"] |= dict.fromkeys(("claude", "cheap", *FAILING), claude) | {
            "searching": {**claude, "features": hosted},
            "told": {
                **claude,
                "features": [*hosted, "files"],
                "tells_users": True,
                "betas": ["*"],
            },
        }
        found["models"] |= {f"{name}/*": "passthrough" for name in names}
        both = {"targets": ["busy/m", "pool:main"], "compare_with": ["claude/m"]}
        found["models"]["both"] = both
        found["models"]["spilling"] = {"targets": ["cheap/m", "alpha/m"]}
        found["policies"] = [{"name": "plain"}]

    with running(state / "host", adjust=adjust) as stack:
        yield stack

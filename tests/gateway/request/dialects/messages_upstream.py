"""A provider that speaks Anthropic's Messages from a script, and what it is asked and says."""

import json
import threading
from typing import Any

from deploy.upstream_server import UpstreamServer

PATH = "/v1/messages"
USAGE = {
    "input_tokens": 40,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 2000,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens": 3,
    "service_tier": "standard",
}
PRICE = {
    "usd_per_million": {
        "input": 1, "cached": 0.1, "cache_write": 1.25, "cache_write_1h": 2, "output": 10,
    }
}  # fmt: skip
# In millionths: 40 fresh, 2000 read, 10 and 20 written, 50 made.
BILL_PUSD = 40 * 1_000_000 + 2000 * 100_000 + 10 * 1_250_000 + 20 * 2_000_000 + 50 * 10_000_000
MARK = {"type": "ephemeral", "ttl": "1h"}
PDF = "JVBERi0xLjQK"
# As Claude Code writes one, with members in its order and blocks that chat has no form for.
CODE: dict[str, Any] = {
    "model": "MODEL",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "read it", "x_new": {"a": 1}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"},
                {"type": "redacted_thinking", "data": "aGlkZGVu"},
                {"type": "text", "text": "I read it.", "citations": None},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.pdf"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {
                            "type": "document",
                            "source": {
                                "type": "base64", "media_type": "application/pdf", "data": PDF,
                            },
                            "citations": {"enabled": True},
                            "cache_control": MARK,
                        },
                        {"type": "tool_reference", "tool_name": "Read"},
                    ],
                }
            ],
        },
    ],
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1"},
        {"type": "text", "text": "You are an agent.", "cache_control": MARK},
    ],
    "tools": [
        {"name": "Read", "description": "é", "input_schema": {"type": "object", "properties": {}}}
    ],
    "metadata": {"user_id": "user_of_ours"},
    "max_tokens": 3200,
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
    "stream": True,
}  # fmt: skip
FAILING = ("busy", "broken", "cut", "short", "poor", "full")  # targets that a test makes fail
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}


def event(name: str, **members: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


def delta(index: int, **members: Any) -> bytes:
    return event("content_block_delta", index=index, delta=members)


START = event(
    "message_start",
    message={
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": USAGE,
    },
)  # fmt: skip
TEXT_START = event("content_block_start", index=1, content_block={"type": "text", "text": ""})
ANSWER = [
    START,
    event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
    event("ping"),
    delta(0, type="thinking_delta", thinking="hm"),
    delta(0, type="signature_delta", signature="c2ln"),
    event("content_block_stop", index=0),
    TEXT_START,
    delta(1, type="text_delta", text="Hello"),
    delta(1, type="citations_delta", citation={"type": "page_location", "cited_text": "é\u2028"}),
    event("content_block_stop", index=1),
    event(
        "message_delta",
        delta={"stop_reason": "pause_turn", "stop_sequence": None},
        usage={"output_tokens": 50},
        context_management={"applied_edits": []},
    ),
    event("message_stop"),
]
WHOLE = {
    "id": "msg_02", "type": "message", "role": "assistant", "model": "claude-x",
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "a"}},
        {"type": "text", "text": "It is.", "citations": [{"type": "char_location"}]},
    ],
    "stop_reason": "refusal", "stop_sequence": None,
    "stop_details": {"type": "refusal", "category": "cyber"},
    "usage": {**USAGE, "output_tokens": 50},
    "container": {"id": "container_1"},
}  # fmt: skip


class MessagesUpstream(UpstreamServer):
    """A server that speaks Messages from a script and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.left = threading.Event()
        self.stream, self.whole, self.status = list(ANSWER), json.dumps(WHOLE).encode(), 200
        self.headers: dict[str, str] = {}
        self.hangs = False
        self.url = f"http://127.0.0.1:{self.port}"

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        heads = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["path"], heads, body))
        streamed = self.status == 200 and json.loads(body).get("stream") is True
        kind = "text/event-stream" if streamed else "application/json"
        told = [(b"content-type", kind.encode())]
        told += [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": told})
        for piece in self.stream if streamed else [self.whole]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if self.hangs:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

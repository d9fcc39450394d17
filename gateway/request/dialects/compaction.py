"""OpenAI's `/v1/responses/compact`: a model summarizes the conversation to replace it.

The answer has the user's last messages unchanged and one `compaction` item, whose text is encrypted
by the keeper of the answer (`gateway.request.store.compaction`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from gateway.http.body import Members, encode_raw
from gateway.request.dialects.base import DecodedRequest, Purpose
from gateway.request.dialects.fields import decode_whole_member
from gateway.request.dialects.response_encoder import ResponseEncoder
from gateway.request.dialects.responses import ResponsesDialect
from gateway.request.dialects.responses_encoder import ResponsesEncoder, usage
from router.types import Feature

KEPT_BYTES: Final = 64 * 1024  # of the user's last messages, which stay unchanged
INSTRUCTION: Final = (
    "Write a summary of this conversation for another assistant that continues it without having "
    "seen it. Keep the goals, constraints and preferences of the user, decisions and their "
    "reasons, results of tools, names of files and identifiers, and what remains to be done. "
    "Answer with the summary alone."
)
# Chat members that a summary does not need; they are read before as for any answer.
_LEFT_OUT: Final = frozenset(
    {
        "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
        "response_format", "verbosity", "logprobs", "top_logprobs",
    }
)  # fmt: skip
# Members of a Responses request that a summary does not use.
_UNUSED: Final = (
    "background", "include", "metadata", "parallel_tool_calls", "store", "stream", "text",
    "tool_choice", "tools", "top_logprobs",
)  # fmt: skip
_UNSAID: Final = frozenset((b"null", b"false", b"[]", b"{}", b"0"))
# First line of a message that replaces an earlier compaction; the new one includes it.
PREFACE: Final = "Summary of the conversation so far:\n\n"
SUMMARY_MARK: Final = {"created_by": "compaction"}  # marks such a message; a user may write alike
Voice = Callable[[str, int], ResponseEncoder]


class CompactionDialect(ResponsesDialect):
    """A Responses request whose answer is the shortened conversation."""

    def __init__(self) -> None:
        super().__init__("compaction")

    @property
    def purpose(self) -> Purpose:
        return "compaction"

    def decode_request(self, members: Members) -> DecodedRequest:
        heard = super().decode_request(members)
        kept = last_user_messages(decode_whole_member(members, "input"))
        unused = {
            name for name in _UNUSED if bytes(members.get(name, b"null")).strip() not in _UNSAID
        }
        if "tools" in heard.members and "tools" not in unused:
            unused.add("input.additional_tools")
        return _summarized(heard, partial(CompactionEncoder, kept=kept), unused)


def _summarized(heard: DecodedRequest, voice: Voice, unused: set[str]) -> DecodedRequest:
    """Return the request for a summary, also of the forms with less of the conversation."""
    chat = {name: value for name, value in heard.members.items() if name not in _LEFT_OUT}
    messages = [
        *msgspec.json.decode(bytes(chat["messages"])),
        {"role": "user", "content": INSTRUCTION},
    ]
    shorten = heard.shorten

    def shortened(least_bytes: int) -> DecodedRequest | None:
        less = None if shorten is None else shorten(least_bytes)
        return None if less is None else _summarized(less, voice, unused)

    features = dict(heard.features)
    features.pop(Feature.LOGPROBS, None)
    return replace(
        heard,
        members={**chat, "messages": encode_raw(joined(messages))},
        voice=voice,
        features=features,
        ignored=tuple(sorted({*heard.ignored, *unused})),
        instead=None if heard.instead is None else _summarized(heard.instead, voice, unused),
        shorten=None if shorten is None else shortened,
    )


class CompactionEncoder(ResponsesEncoder):
    """An encoder of a summary as a compaction; it is never streamed."""

    def __init__(self, request_id: str, created_s: int, *, kept: list[Any]) -> None:
        super().__init__(request_id, created_s, echo={})
        self._kept = kept

    def document(self) -> dict[str, Any]:
        summary = "".join(block.text for block in self.blocks if block.kind == "text")
        item = {"id": f"cmp_{self._name}_0", "type": "compaction", "encrypted_content": summary}
        return {
            "id": f"resp_{self._name}",
            "object": "response.compaction",
            "created_at": self._created_s,
            "output": [*self._kept, item],
            "usage": usage(self.tokens),
        }


def last_user_messages(given: Any) -> list[dict[str, Any]]:
    """Return the user's last messages, up to `KEPT_BYTES`."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    kept: list[dict[str, Any]] = []
    left = KEPT_BYTES
    for index, item in reversed(list(enumerate(given if isinstance(given, list) else ()))):
        if not _is_user(item) or item.items() >= SUMMARY_MARK.items():
            continue
        left -= len(msgspec.json.encode(item))
        if left < 0:
            break
        content = item.get("content")
        if isinstance(content, str):
            content = [{"type": "input_text", "text": content}]
        kept.append(
            {"id": f"msg_{index}", "status": "completed", **item, "type": "message",
             "content": content}
        )  # fmt: skip
    return kept[::-1]


def joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with the last two user messages joined.

    Many chat templates require alternating roles.
    """
    last, asked = messages[-2], messages[-1]
    if last["role"] == asked["role"] and isinstance(last["content"], str):
        return [*messages[:-2], {**last, "content": f"{last['content']}\n\n{asked['content']}"}]
    return messages


def _is_user(item: Any) -> bool:
    is_message = isinstance(item, Mapping) and item.get("type", "message") == "message"
    return is_message and item.get("role") == "user"


COMPACT: Final = CompactionDialect()

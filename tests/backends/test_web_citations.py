"""What Claude cites of the web is told to clients of chat, whichever way it came."""

import json
from typing import Any

import pytest

from backends.litellm_text import StreamWriter, whole_answer
from backends.messages_answer import MessagesStream, chat_answer
from backends.sse import EventSplitter, data_spans, join_data
from backends.web_citations import add_annotations, url_annotations

FOUND = {"type": "web_search_result_location", "url": "https://a", "title": "A", "cited_text": "c"}
PAGE = {"type": "search_result_location", "source": "https://b", "title": None}
BOOK = {"type": "char_location", "document_title": "B", "cited_text": "c"}


def annotation(url: str, title: str, start: int, end: int) -> dict[str, Any]:
    place = {"start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": {"url": url, "title": title, **place}}


def event(name: str, **members: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


def deltas(stream: bytes) -> list[dict[str, Any]]:
    datas = [join_data(told, data_spans(told)) for told in EventSplitter().feed(stream)]
    return [
        choice["delta"]
        for data in datas
        if data != b"[DONE]"
        for choice in json.loads(data)["choices"]
    ]


class Answer:
    """An object of LiteLLM's."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self._value


def test_a_whole_answer_of_messages() -> None:
    """Red before: no client of chat or Responses heard of a source."""
    content = [
        {"type": "text", "text": "Pre "},
        {"type": "text", "text": "cited.", "citations": [FOUND, BOOK, PAGE, None]},
        {"type": "text", "text": " End.", "citations": None},
    ]
    message = {"id": "m", "content": content, "stop_reason": "end_turn"}
    answer = chat_answer(json.dumps(message).encode(), created_s=1, native=False)
    said = json.loads(answer)["choices"][0]["message"]
    assert said["annotations"] == [
        annotation("https://a", "A", 4, 10), annotation("https://b", "", 4, 10)
    ]  # fmt: skip
    assert said["content"][4:10] == "cited."


@pytest.mark.parametrize("first", ["the text", "the source"])
def test_a_stream_of_messages(first: str) -> None:
    """A source may come before the text that it supports."""
    pieces = [
        event("content_block_delta", index=1, delta={"type": "text_delta", "text": "cited."}),
        event("content_block_delta", index=1, delta={"type": "citations_delta", "citation": FOUND}),
    ]
    block: dict[str, Any] = {"type": "text", "text": "", "citations": []}
    stream = [
        event("message_start", message={"id": "m", "model": "claude"}),
        event("content_block_start", index=0, content_block={**block, "text": "P"}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "re "}),
        event("content_block_stop", index=0),
        event("content_block_start", index=1, content_block=block),
        *(pieces if first == "the text" else reversed(pieces)),
        event("content_block_stop", index=1),
        event("message_delta", delta={"stop_reason": "end_turn"}),
        event("message_stop"),
    ]
    told = deltas(MessagesStream(created_s=1, native=False).feed(b"".join(stream)))
    cited = [delta["annotations"] for delta in told if "annotations" in delta]
    assert cited == [[annotation("https://a", "A", 4, 10)]]


def test_a_whole_answer_of_litellm() -> None:
    other = {"citations": [[{**FOUND, "supported_text": "cited."}, BOOK]], "thinking_blocks": None}
    message = {"role": "assistant", "content": "Pre cited.", "provider_specific_fields": other}
    result = Answer({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    said = json.loads(whole_answer(result))["choices"][0]["message"]
    assert said["annotations"] == [annotation("https://a", "A", 4, 10)]


def test_a_stream_of_litellm() -> None:
    """Where only the end of what is cited is known, that is its place."""
    writer = StreamWriter()
    told = b""
    for delta in ({"content": "Pre "}, {"content": "cited."}, {
        "content": "", "provider_specific_fields": {"citation": FOUND}
    }):  # fmt: skip
        told += writer.event(Answer({"choices": [{"index": 0, "delta": delta}]}))
    assert deltas(told)[-1]["annotations"] == [annotation("https://a", "A", 10, 10)]


@pytest.mark.parametrize(
    "said",
    [
        None, "x", {}, {"provider_specific_fields": None},
        {"provider_specific_fields": {"citations": [[BOOK], None, 3]}},
        {"annotations": [1], "provider_specific_fields": {"citation": FOUND}},
    ],
)  # fmt: skip
def test_what_is_no_citation_of_the_web_changes_nothing(said: Any) -> None:
    before = json.dumps(said)
    add_annotations(said)
    assert json.dumps(said) == before
    assert url_annotations({"url": "https://a"}, 0, 1) == []
    assert url_annotations([{"url": "javascript:x"}], 0, 1) == []

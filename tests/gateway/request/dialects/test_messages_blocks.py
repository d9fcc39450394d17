"""Every block that Anthropic's SDK knows, in every place: told, or refused by name, never lost."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.base import DecodedRequest
from gateway.request.dialects.messages import MESSAGES
from gateway.request.dialects.messages_blocks import DEEPEST
from router.types import Feature

WORD = "kiwi"  # in whatever of a block a model could read
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}
PNG = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
TEXT = {"type": "text", "text": WORD}
PICTURE = {"type": "image", "source": PNG}
URL = "https://pages.test/kiwi"


def document(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": source, **more}


def result(kind: str, content: Any) -> dict[str, Any]:
    return {"type": kind, "tool_use_id": "srvtoolu_1", "content": content}


# What a model can be told of each: as anthropic 2.11.0 has them, both of `types` and `types.beta`.
TOLD = {
    "text": TEXT,
    "document-text": document({"type": "text", "media_type": "text/plain", "data": WORD}),
    "document-base64-text": document(
        {"type": "base64", "media_type": "text/plain", "data": base64.b64encode(b"a kiwi").decode()}
    ),
    "document-content": document({"type": "content", "content": [TEXT]}, title="T", context="C"),
    "document-string": document({"type": "content", "content": WORD}),
    "search_result": {"type": "search_result", "source": URL, "title": "T", "content": [TEXT]},
    "tool_reference": {"type": "tool_reference", "tool_name": WORD},
    "browser_state": {
        "type": "browser_state",
        "tabs": [{"tab_id": "1", "title": WORD, "url": URL, "active": True}],
        "state_changes": [{"type": "tab_opened", "tab_id": "1"}],
    },
    "server_tool_use": {"type": "server_tool_use", "id": "s", "name": "web_search",
                        "input": {"query": WORD}},
    "mcp_tool_use": {"type": "mcp_tool_use", "id": "m", "name": WORD, "server_name": "s",
                     "input": {}},
    "web_search_tool_result": result("web_search_tool_result", [
        {"type": "web_search_result", "title": "T", "url": URL, "encrypted_content": "x"}]),
    "web_search-error": result("web_search_tool_result", {
        "type": "web_search_tool_result_error", "error_code": WORD}),
    "web_fetch_tool_result": result("web_fetch_tool_result", {
        "type": "web_fetch_result", "url": URL, "content": document(
            {"type": "text", "media_type": "text/plain", "data": WORD})}),
    "web_fetch-error": result("web_fetch_tool_result", {
        "type": "web_fetch_tool_result_error", "error_code": WORD}),
    "code_execution_tool_result": result("code_execution_tool_result", {
        "type": "code_execution_result", "stdout": WORD, "stderr": "", "return_code": 1,
        "content": [{"type": "code_execution_output", "file_id": "f"}]}),
    "code_execution-encrypted": result("code_execution_tool_result", {
        "type": "encrypted_code_execution_result", "encrypted_stdout": "x", "stderr": WORD,
        "return_code": 0, "content": []}),
    "bash_code_execution_tool_result": result("bash_code_execution_tool_result", {
        "type": "bash_code_execution_result", "stdout": WORD, "stderr": "", "return_code": 0,
        "content": []}),
    "text_editor-view": result("text_editor_code_execution_tool_result", {
        "type": "text_editor_code_execution_view_result", "file_type": "text", "content": WORD}),
    "text_editor-replace": result("text_editor_code_execution_tool_result", {
        "type": "text_editor_code_execution_str_replace_result", "lines": [f"+{WORD}"]}),
    "tool_search_tool_result": result("tool_search_tool_result", {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": WORD}]}),
    "tool_search-error": result("tool_search_tool_result", {
        "type": "tool_search_tool_result_error", "error_code": "unavailable",
        "error_message": WORD}),
    "mcp_tool_result": result("mcp_tool_result", [TEXT]),
    "advisor_tool_result": result("advisor_tool_result", {"type": "advisor_result", "text": WORD}),
    "compaction": {"type": "compaction", "content": WORD},
}  # fmt: skip
# What is left out; some of it is a line that says so.
NAMED = {
    "thinking": {"type": "thinking", "thinking": "hm", "signature": "x"},
    "redacted_thinking": {"type": "redacted_thinking", "data": "x"},
    "fallback": {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
    "mcp_tool_listing": {"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []},
}
# What nobody here reads: refused where it was just said, a line afterwards.
UNREADABLE = {
    "container_upload": {"type": "container_upload", "file_id": "f"},
    "document-file": document({"type": "file", "file_id": "f"}),
    "document-url": document({"type": "url", "url": URL}),
    "document-word": document({**PDF, "media_type": "application/msword"}),
    "image-file": {"type": "image", "source": {"type": "file", "file_id": "f"}},
    "new": {"type": "hologram", "data": "x"},
}
CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}


def decode(messages: list[dict[str, Any]], **members: Any) -> DecodedRequest:
    body = {"model": "m", "max_tokens": 5, "messages": messages, **members}
    asked = MESSAGES.decode_request(decode_members(json.dumps(body).encode()))
    level: DecodedRequest | None = asked
    while level is not None:  # chat takes each
        read_chat(level.members, max_n=8, session=None)
        level = level.instead
    return asked


def told(asked: DecodedRequest) -> list[dict[str, Any]]:
    return json.loads(bytes(asked.members["messages"]))


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def tool_result(*blocks: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t1", "content": list(blocks)}


def placed(block: dict[str, Any], place: str) -> list[dict[str, Any]]:
    """A conversation with the block at a place."""
    return {
        "newest": [user(block, {"type": "text", "text": "so?"})],
        "earlier": [user(block), assistant({"type": "text", "text": "so"}), user(TEXT)],
        "answer": [user(TEXT), assistant(block), {"role": "user", "content": "and?"}],
        "result": [user(TEXT), assistant(CALL), user(tool_result(block))],
        "beside": [user(TEXT), assistant(CALL), user(tool_result(TEXT), block)],
        "system": [user(TEXT), {"role": "system", "content": [block]}, assistant(TEXT), user(TEXT)],
    }[place]


PLACES = ("newest", "earlier", "answer", "result", "beside", "system")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", TOLD)
def test_what_can_be_read_is_told(name: str, place: str) -> None:
    messages = [
        {**entry, "content": [block for block in entry["content"] if block is not TEXT]}
        if isinstance(entry["content"], list) and name != "text"
        else entry
        for entry in placed(TOLD[name], place)
    ]
    assert WORD in json.dumps(told(decode([*messages, user({"type": "text", "text": "?"})])))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMED)
def test_what_its_service_alone_reads_is_named(name: str, place: str) -> None:
    assert f"messages.{name}" in decode(placed(NAMED[name], place)).ignored


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_nobody_reads_locks_no_session(name: str, place: str) -> None:
    block = UNREADABLE[name]
    if place == "newest":
        with pytest.raises(RequestError) as caught:
            decode(placed(block, place))
        assert caught.value.row.status == 400
        assert caught.value.param.startswith("messages[0].content[0]")
        assert any(fix in caught.value.message for fix in ("Leave it out.", "Send its"))
        return
    asked = decode(placed(block, place))
    assert f"messages.{block['type']}" in asked.ignored
    assert "was left out here" in json.dumps(told(asked))


AGAIN = {"type": "text", "text": "and without it?"}


def sent_again(block: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """A refused turn, as clients send it with the user's next words."""
    return [
        [user(block, TEXT), user(AGAIN)],
        [user(block, TEXT), {"role": "user", "content": "and without it?"}],
        [user(block, TEXT, AGAIN)],
        [user(TEXT), assistant(TEXT), user(TEXT, block, TEXT, AGAIN)],
    ]


@pytest.mark.parametrize("form", range(4))
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_was_refused_locks_no_session_after_the_users_next_words(name: str, form: int) -> None:
    block = UNREADABLE[name]
    asked = decode(sent_again(block)[form])
    assert f"messages.{block['type']}" in asked.ignored
    assert "was left out here" in json.dumps(told(asked))


@pytest.mark.parametrize("form", range(4))
def test_a_refused_pdf_is_a_line_after_the_users_next_words(form: int) -> None:
    asked = decode(sent_again(document(PDF))[form])
    assert asked.features == {Feature.FILES: "messages"}
    assert asked.instead is not None
    assert "was left out here" in json.dumps(told(asked.instead))


def test_only_the_last_medium_of_a_turn_is_still_refused() -> None:
    asked = decode([user(document(PDF), TEXT, document(PDF), AGAIN)])
    assert asked.features == {Feature.FILES: "messages[0].content[2]"}
    assert asked.instead is None or "was left out here" in json.dumps(told(asked.instead))


def test_a_pdf_of_a_tool_goes_on_without_it_where_nobody_reads_files() -> None:
    asked = decode(placed(document(PDF, title="a.pdf"), "result"))
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}
    assert told(asked)[-2:] == [
        {"role": "tool", "tool_call_id": "t1", "content": "a.pdf"},
        user({"type": "file", "file": file}),
    ]
    assert asked.features == {Feature.FILES: "messages"}
    assert asked.ignored == ()
    assert asked.instead is not None
    assert told(asked.instead)[-1] == {
        "role": "tool", "tool_call_id": "t1",
        "content": "a.pdf\n[A block (PDF document) was left out here (a.pdf): it cannot be read.]",
    }  # fmt: skip
    assert asked.instead.features == {}
    assert asked.instead.ignored == ("messages.document",)
    assert asked.instead.instead is None


def test_a_pdf_that_was_just_sent_needs_who_reads_it() -> None:
    asked = decode(placed(document(PDF), "newest"))
    assert asked.features == {Feature.FILES: "messages[0].content[0]"}
    assert asked.instead is None


def test_pictures_go_after_files_and_never_the_newest() -> None:
    turns = [user(PICTURE, document(PDF)), assistant(TEXT), user(PICTURE, TEXT)]
    levels = [decode(turns)]
    while levels[-1].instead is not None:
        levels.append(levels[-1].instead)
    counts = [
        [bytes(level.members["messages"]).count(word) for word in (b'"image_url":', b'"file":')]
        for level in levels
    ]
    assert counts == [[2, 1], [2, 0], [1, 0]]
    assert [level.ignored for level in levels] == [
        (), ("messages.document",), ("messages.document", "messages.image")
    ]  # fmt: skip


def test_marks_follow_a_medium_and_its_note() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    asked = decode(placed(document(PDF, title="T", **mark), "earlier"))
    assert asked.instead is not None
    for level in (asked, asked.instead):
        first = json.loads(bytes(level.marked["messages"]))[0]["content"]
        assert [set(mark) <= part.keys() for part in first] == [False, True]
        assert b"_of" not in bytes(level.marked["messages"])


def test_a_summary_stands_for_what_was_said_before() -> None:
    summary = {"type": "compaction", "content": "a summary"}
    turns = [user(TEXT), assistant(TEXT, summary, {"type": "text", "text": "b"}), user(TEXT)]
    assert told(decode(turns, system="s")) == [
        {"role": "system", "content": "s"}, {"role": "user", "content": "a summary"},
        {"role": "assistant", "content": "b"}, {"role": "user", "content": WORD},
    ]  # fmt: skip
    failed = [user(TEXT), assistant({**summary, "content": None}, TEXT), user(TEXT)]
    assert [entry["content"] for entry in told(decode(failed))] == [WORD, WORD, WORD]


def test_members_that_are_not_read_are_named() -> None:
    cited = {**TEXT, "citations": [{"type": "char_location"}]}
    asked = document({"type": "text", "data": "x"}, citations={"enabled": True})
    plain = document({"type": "text", "data": "x"}, citations={"enabled": False})
    found = decode([user(asked, plain), assistant(cited), user(TEXT)])
    assert found.ignored == ("messages.document.citations", "messages.text.citations")


def test_an_instruction_may_be_of_one_turn() -> None:
    once = {"role": "system", "content": WORD, "clear_at": "next_user_message"}
    assert WORD in json.dumps(told(decode([user({"type": "text", "text": "a"}), once])))
    gone = [once, user({"type": "text", "text": "b"})]
    assert WORD not in json.dumps(told(decode(gone)))


@pytest.mark.parametrize("kind", ["tool_use", "tool_result"])
def test_what_belongs_to_the_other_side_is_refused(kind: str) -> None:
    block = {"tool_use": CALL, "tool_result": tool_result(TEXT)}[kind]
    turns = {"tool_use": [user(block)], "tool_result": [user(TEXT), assistant(block), user(TEXT)]}
    with pytest.raises(
        RequestError, match=rf"`messages\[\d\].content\[0\]`: a block of type `{kind}`"
    ):
        decode(turns[kind])


def nested(depth: int) -> dict[str, Any]:
    block = TEXT
    for _ in range(depth):
        block = document({"type": "content", "content": [block]})
    return block


@pytest.mark.parametrize("place", PLACES)
def test_blocks_in_blocks_have_an_end(place: str) -> None:
    assert WORD in json.dumps(told(decode(placed(nested(DEEPEST - 1), place))))
    with pytest.raises(RequestError, match="nested too deeply"):
        decode(placed(nested(DEEPEST + 1), place))
    lists: Any = WORD
    for _ in range(50):
        lists = [lists]
    with pytest.raises(RequestError, match="nested too deeply"):
        decode(placed(result("web_fetch_tool_result", lists), place))


BLOCKS = st.sampled_from([*TOLD.values(), *NAMED.values(), *UNREADABLE.values(), PICTURE,
                          document(PDF)])  # fmt: skip


@settings(max_examples=200)
@given(
    st.lists(
        st.lists(BLOCKS, min_size=1, max_size=4).flatmap(
            lambda blocks: st.sampled_from(
                (user(*blocks), user(tool_result(*blocks)), assistant(*blocks),
                 {"role": "system", "content": blocks})
            )
        ),
        max_size=5,
    )
)  # fmt: skip
def test_any_conversation_goes_on_at_a_model_of_texts(turns: list[dict[str, Any]]) -> None:
    """A user's plain next word is always answered, and what a model was not told has a name."""
    asked = decode([*turns, assistant(TEXT), {"role": "user", "content": "go on"}])
    level, last = asked, asked
    while level is not None:
        last, level = level, level.instead
    said = bytes(last.members["messages"])
    assert b'"image_url"' not in said
    assert b'"file"' not in said
    assert b"_of" not in said
    assert last.features == {}
    blocks = [block for turn in turns for block in turn["content"]]
    blocks += [inner for block in blocks for inner in block.get("content") or ()
               if block["type"] == "tool_result"]  # fmt: skip
    for block in blocks:
        lost = block in NAMED.values() or block in UNREADABLE.values() or block == PICTURE
        if lost:
            assert f"messages.{block['type']}" in last.ignored

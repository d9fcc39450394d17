"""Documents and pictures of a session through the running gateway: who reads them gets them."""

from typing import Any

import pytest

PATH = "/v1/messages"
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK" * 60_000}
DOCUMENT = {"type": "document", "title": "a.pdf", "source": PDF}
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
TOOL = {"name": "Read", "input_schema": {"type": "object", "properties": {}}}
ALL = ["tools", "images", "files"]


def by_what_they_read(found: dict[str, Any], _: dict[str, int]) -> None:
    """`own` reads texts, `seeing` is an engine for texts beside an API for all."""
    found["pools"]["main"]["engine"]["features"] = ["tools"]
    found["providers"]["steady"]["features"] = ALL
    found["models"]["seeing"] = {**found["models"]["own"], "targets": ["pool:main", "steady/m"]}
    found["models"]["blind"] = {"targets": ["alpha/m"]}
    found["providers"]["alpha"]["features"] = ["tools", "images"]


@pytest.fixture(scope="module")
def stack(running, tmp_path_factory):
    with running(tmp_path_factory.mktemp("host"), adjust=by_what_they_read) as found:
        yield found


def agents_turns(block: dict[str, Any]) -> list[dict[str, Any]]:
    """A tool of the client came to a block."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"p": "a.pdf"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [block]}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]


def ask(stack, model: str, messages: list[dict[str, Any]], token: str | None = None) -> Any:
    body = {"model": model, "max_tokens": 5, "tools": [TOOL], "messages": messages}
    return stack.post(PATH, body, *(() if token is None else (token,)))


@pytest.mark.parametrize(
    ("block", "name"), [(DOCUMENT, "messages.document"), (PICTURE, "messages.image")]
)
def test_a_session_goes_on_where_nobody_reads_what_a_tool_found(stack, block, name) -> None:
    turns = agents_turns(block)
    for said in ("and now?", "and then?"):
        answer = ask(stack, "own", turns)
        assert answer.status_code == 200, answer.text
        assert name in answer.headers["x-breakeven-ignored"].split(", ")
        (row,) = stack.settled(answer)
        assert row["input_tokens"] < 2000, "the data are no prompt"
        turns = [*turns, {"role": "assistant", "content": answer.json()["content"]},
                 {"role": "user", "content": said}]  # fmt: skip


@pytest.mark.parametrize("block", [DOCUMENT, PICTURE])
def test_who_reads_it_gets_it(stack, block) -> None:
    answer = ask(stack, "seeing", agents_turns(block))
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-breakeven-backend"] == "steady/m"
    assert "x-breakeven-ignored" not in answer.headers
    (row,) = stack.settled(answer)
    assert row["basis"] == "reported"
    assert row["input_tokens"] > 256, "it was read"


def test_what_may_not_leave_goes_on_inside_without_it(stack) -> None:
    inside = stack.key("inside", residency="internal_only").token
    answer = ask(stack, "seeing", agents_turns(DOCUMENT), inside)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-breakeven-backend"].startswith("pool:main/")
    assert answer.headers["x-breakeven-ignored"] == "messages.document"


@pytest.mark.parametrize("model", ["own", "blind"])
def test_a_document_that_was_just_sent_is_refused_by_its_place(stack, model: str) -> None:
    answer = ask(stack, model, [{"role": "user", "content": [DOCUMENT]}])
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert "`messages[0].content[0]`" in error["message"]
    assert "features: [files]" in error["message"]


def test_a_long_document_is_no_text_to_whom_it_is_sent(stack) -> None:
    """Its 700 KB would be more than any context, and are no text."""
    answer = ask(stack, "steady", [{"role": "user", "content": [DOCUMENT]}])
    assert answer.status_code == 200, answer.text
    (row,) = stack.settled(answer)
    assert 1024 < row["input_tokens"] < 5000
    assert row["cost_pusd"] > 0


def test_a_document_is_counted_by_its_pages(stack) -> None:
    asked = {"model": "steady", "messages": [{"role": "user", "content": [DOCUMENT]}]}
    counted = stack.post(f"{PATH}/count_tokens", asked)
    assert counted.status_code == 200, counted.text
    assert 1000 < counted.json()["input_tokens"] < 50_000, "and not by its 800 KB"

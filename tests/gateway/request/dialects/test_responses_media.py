"""Pictures and files in the history of Responses: who reads them gets them, others are told."""

import json
from typing import Any

import pytest

from gateway.http.body import decode_members
from gateway.request.dialects.responses import RESPONSES
from gateway.request.dialects.responses_input import read_conversation

PATH = "/v1/responses"
PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
PICTURE = {"type": "input_image", "image_url": PNG}
FILE = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}
KEPT = {"type": "input_image", "file_id": "file-1"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
TOOL = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}


def by_what_they_read(found: dict[str, Any], _: dict[str, int]) -> None:
    """`own` reads texts, `seeing` is an engine for texts beside an API for all."""
    found["pools"]["main"]["engine"]["features"] = ["tools"]
    found["providers"]["steady"]["features"] = ["tools", "images", "files"]
    found["models"]["seeing"] = {**found["models"]["own"], "targets": ["pool:main", "steady/m"]}


@pytest.fixture(scope="module")
def stack(running, tmp_path_factory):
    with running(tmp_path_factory.mktemp("host"), adjust=by_what_they_read) as found:
        yield found


def earlier(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The user sent it, and was answered."""
    return [
        {"role": "user", "content": [{"type": "input_text", "text": "see"}, part]},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "and now?"},
    ]


def found_by_tool(part: dict[str, Any]) -> list[dict[str, Any]]:
    """A tool came to it."""
    output = {"type": "function_call_output", "call_id": "call_1", "output": [part]}
    return [{"role": "user", "content": "hi"}, CALL, output]


def ask(stack, model: str, given: list[dict[str, Any]], token: str | None = None) -> Any:
    body = {"model": model, "max_output_tokens": 5, "tools": [TOOL], "input": given, "store": False}
    return stack.post(PATH, body, *(() if token is None else (token,)))


@pytest.mark.parametrize("place", [earlier, found_by_tool])
@pytest.mark.parametrize(
    ("part", "name"), [(PICTURE, "input.image"), (FILE, "input.file"), (KEPT, "input.image")]
)
def test_a_conversation_goes_on_where_nobody_reads_it(stack, place, part, name) -> None:
    answer = ask(stack, "own", place(part))
    assert answer.status_code == 200, answer.text
    assert name in answer.headers["x-breakeven-ignored"].split(", ")


@pytest.mark.parametrize("place", [earlier, found_by_tool])
@pytest.mark.parametrize("part", [PICTURE, FILE])
def test_who_reads_it_gets_it_and_what_may_not_leave_goes_on_inside(stack, place, part) -> None:
    answer = ask(stack, "seeing", place(part))
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-breakeven-backend"] == "steady/m"
    assert "x-breakeven-ignored" not in answer.headers
    inside = stack.key("inside", residency="internal_only").token
    answer = ask(stack, "seeing", place(part), inside)
    assert answer.headers["x-breakeven-backend"].startswith("pool:main/")
    assert answer.headers["x-breakeven-ignored"].startswith("input.")


@pytest.mark.parametrize("part", [PICTURE, FILE, KEPT])
def test_what_the_user_has_just_sent_is_refused(stack, part) -> None:
    answer = ask(stack, "own", [{"role": "user", "content": [part]}])
    assert answer.status_code == 400, answer.text


TEXTS = [{"type": "input_text", "text": word} for word in ("see", "and without it?")]


@pytest.mark.parametrize("part", [PICTURE, FILE, KEPT])
def test_what_was_refused_locks_no_session_after_the_users_next_words(stack, part) -> None:
    sent = {"role": "user", "content": [part, TEXTS[0]]}
    for given in (
        [sent, {"role": "user", "content": "and without it?"}],
        [{"role": "user", "content": [part, *TEXTS]}],
    ):
        answer = ask(stack, "own", given)
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-breakeven-ignored"].startswith("input.")
    assert ask(stack, "own", [sent]).status_code == 400, "the control: it can still be heeded"


def test_a_stored_chain_with_a_picture_goes_on(stack) -> None:
    body = {"model": "seeing", "max_output_tokens": 5, "input": earlier(PICTURE)[:1]}
    first = stack.post(PATH, body)
    assert first.status_code == 200, first.text
    asked = {"model": "own", "max_output_tokens": 5, "input": "and now?"}
    answer = stack.post(PATH, {**asked, "previous_response_id": first.json()["id"]})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-breakeven-ignored"] == "input.image"


def test_both_media_make_three_forms_from_the_whole_to_the_least() -> None:
    given = [*earlier(PICTURE), {"role": "assistant", "content": "x"}, *earlier(FILE)]
    decoded = RESPONSES.decode_request(decode_members(_body(given)))
    forms = []
    while decoded is not None:
        forms.append(decoded.ignored)
        decoded = decoded.instead
    assert forms == [(), ("input.file",), ("input.file", "input.image")]


def test_a_newer_picture_is_not_left_out_with_an_older_one() -> None:
    given = [*earlier(PICTURE)[:2], {"role": "user", "content": [PICTURE]}]
    told = read_conversation(None, given).turns.messages(without={"image"})
    assert [part["type"] for part in told[0]["content"]] == ["text", "text"]
    assert [part["type"] for part in told[-1]["content"]] == ["image_url"]


def _body(given: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "m", "input": given}).encode()

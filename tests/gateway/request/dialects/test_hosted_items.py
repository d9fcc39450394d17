"""What OpenAI's own tools did in earlier turns is text, so that a session may move here."""

import pytest

from gateway.request.dialects.hosted_items import HOSTED, hosted_trace
from gateway.request.dialects.responses_input import read_conversation

SEARCH = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}}


@pytest.mark.parametrize(
    ("item", "text", "left_out"),
    [
        (SEARCH, '[web_search was called with {"type":"search","query":"q"}]\n', set()),
        (
            {"type": "file_search_call", "queries": ["a"],
             "results": [{"filename": "f.md", "text": "found", "file_id": "x"}]},
            '[file_search was called with ["a"]]\nf.md\nfound\n',
            set(),
        ),
        (
            {"type": "code_interpreter_call", "code": "1+1", "container_id": "c",
             "outputs": [{"type": "logs", "logs": "2"}]},
            "[code_interpreter was called with 1+1]\n2\n",
            {"input.code_interpreter_call.container_id"},
        ),
        (
            {"type": "image_generation_call", "revised_prompt": "a cat", "result": "aGk="},
            "[image_generation was called with a cat]\n",
            {"input.image_generation_call.result"},
        ),
        (
            {"type": "mcp_call", "name": "n", "server_label": "s", "arguments": "{}",
             "error": {"content": [{"type": "text", "text": "no"}]}},
            "[n was called with {}]\nno\n",
            {"input.mcp_call.server_label"},
        ),
        ({"type": "mcp_list_tools", "tools": [{"name": "n"}]}, "", {"input.mcp_list_tools"}),
    ],
)  # fmt: skip
def test_an_item_is_told_as_text(item: dict, text: str, left_out: set[str]) -> None:
    assert hosted_trace(item) == (text, left_out)


@pytest.mark.parametrize("kind", sorted(HOSTED))
def test_a_bare_item_refuses_no_session(kind: str) -> None:
    turns = [{"role": "user", "content": "q"}, {"type": kind}, {"role": "user", "content": "more"}]
    told = read_conversation(None, turns).turns.messages()
    assert told[0]["role"] == "user"
    assert "more" in str(told[-1]["content"])


def test_outcomes_in_outcomes_have_an_end() -> None:
    deep: object = "x"
    for _ in range(5000):
        deep = {"content": [deep]}
    assert hosted_trace({"type": "mcp_call", "name": "n", "output": deep}).text

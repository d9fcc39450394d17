"""Calls of functions in OpenAI's first form get ids that pair them with their results."""

from backends.called_functions import with_call_ids

ASK = {"role": "user", "content": "q"}
CALL = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "function", "name": "f", "content": "42"}


def paired(number: int) -> list[dict]:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": "42", "tool_call_id": f"call_{number}"},
    ]


def test_each_result_is_paired_with_the_call_before_it() -> None:
    asked = [ASK, CALL, RESULT, CALL, RESULT, ASK]
    assert with_call_ids(asked) == [ASK, *paired(2), *paired(4), ASK]
    assert asked == [ASK, CALL, RESULT, CALL, RESULT, ASK], "what was sent is not changed"


def test_what_has_no_pair_stays() -> None:
    both = {**CALL, "tool_calls": paired(1)[0]["tool_calls"]}
    for messages in ([ASK, RESULT], [CALL, ASK, RESULT], [CALL], [both, RESULT], ["odd", RESULT]):
        assert with_call_ids(messages) == messages
    assert with_call_ids(None) is None

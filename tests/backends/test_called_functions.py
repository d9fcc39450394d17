"""Calls of functions in OpenAI's first form get ids that pair them with their results."""

from backends.called_functions import read_arguments, with_call_ids, with_object_arguments

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


def test_calls_are_of_functions_whose_arguments_are_objects() -> None:
    """Red before: through LiteLLM one such call locked a session at Claude and Gemini."""
    custom = {"id": "c", "type": "custom", "custom": {"name": "g", "input": "x"}}
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": given}}
        for given in ('{"a":1}', "{bad", "[1]", "")
    ]
    asked = [ASK, {"role": "assistant", "content": None, "tool_calls": [*calls, custom]}]
    told = with_object_arguments(asked)[1]["tool_calls"]
    assert told[0] == calls[0]
    assert [call["function"]["arguments"] for call in told] == [
        '{"a":1}', '{"invalid_arguments":"{bad"}', '{"invalid_arguments":"[1]"}', "",
        '{"input":"x"}',
    ]  # fmt: skip
    assert told[4] == {
        "id": "c", "type": "function", "function": {"name": "g", "arguments": '{"input":"x"}'}
    }  # fmt: skip
    assert asked[1]["tool_calls"][4] is custom, "what was sent is not changed"


def test_what_has_readable_calls_stays() -> None:
    odd = [{"tool_calls": [None, {}, {"function": 3}]}]
    for messages in (None, [ASK, "odd", CALL, *paired(1)], odd):
        assert with_object_arguments(messages) == messages
    assert read_arguments(None) == read_arguments(" ") == {}

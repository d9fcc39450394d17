"""A cost that the head of an answer states is claimed beside what its counts cost."""

import json

import pytest

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
STATED = b"x-litellm-response-cost: %b\r\n"
ANSWER = {
    "choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21},
}


@pytest.mark.parametrize(
    ("stated", "claimed"), [(b"0.25", 25 * 10**10), (b"0.0", None), (b"nan", None)]
)
def test_the_head_of_an_answer_states_its_cost(faulty, rule, answers, stated, claimed) -> None:
    answer = answers.whole(json.dumps(ANSWER).encode(), HEAD + STATED % stated)
    told = faulty.ask("api", rule(answer=answer), max_tokens=20)
    assert told.status_code == 200
    (row,) = faulty.stack.settled(told)
    assert row["claimed_pusd"] == claimed

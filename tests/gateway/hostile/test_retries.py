"""Attempts that fail after bytes were sent, and others that answer: each is billed by who made it."""

import pytest

from billing_provider import PROMPT, honest

BODY = {"model": "row", "messages": [{"role": "user", "content": "hello there"}], "max_tokens": 50}


def ask(hostile, team, **members):
    return hostile.stack.post("/v1/chat/completions", {**BODY, **members}, hostile.token(team))


async def breaks_whole(call):
    """Makes all of an answer, and breaks off in the middle of it."""
    call.bill.input, call.bill.output = PROMPT, 50
    call.head(200, "application/json", content_length="5000")
    call.send('{"id": "c1", "choices": [{"index": 0, "message": {"content": "wo')
    await call.drop()


async def breaks_stream(call):
    call.bill.input = PROMPT
    call.head()
    call.chunk(role="assistant", content="")
    await call.drop()


async def breaks_before_head(call):
    call.bill.input = PROMPT  # of a stream nobody makes what he does not send
    call.bill.output = 0 if call.body.get("stream") else 50
    await call.drop()


async def lies_then_breaks(call):
    """Bills an absurd figure in the head of its stream."""
    call.bill.input = PROMPT
    call.head()
    usage = {"prompt_tokens": 10**7, "completion_tokens": 10**7, "total_tokens": 2 * 10**7}
    call.event({"id": "c", "choices": [], "usage": usage})
    await call.drop()


async def fails_with_usage(call):
    call.bill.input, call.bill.output = PROMPT, 40
    call.answer(
        {"error": {"message": "it broke", "type": "server_error"}, "usage": call.usage()}, 500
    )


async def error_event_after_thoughts(call):
    """A 200 whose first event is an error, with usage of what was made."""
    call.bill.input, call.bill.output = PROMPT, 40
    call.head()
    call.event(
        {
            "error": {"message": "it broke", "type": "server_error", "code": 500},
            "usage": call.usage(),
        }
    )


async def filtered(call):
    call.bill.input = PROMPT
    call.answer(
        {
            "error": {
                "message": "filtered",
                "type": None,
                "code": "content_filter",
                "param": "prompt",
                "status": 400,
            },
            "usage": call.usage(),
        },
        400,
    )


async def timeout_408(call):
    call.bill.input = PROMPT
    call.answer({"error": {"message": "timed out", "code": "Timeout"}, "usage": call.usage()}, 408)


async def overloaded_with_usage(call):
    call.bill.input, call.bill.output = PROMPT, 30
    call.answer({"error": {"message": "busy", "type": "overloaded"}, "usage": call.usage()}, 503)


FAILS = [
    breaks_whole,
    breaks_stream,
    breaks_before_head,
    lies_then_breaks,
    fails_with_usage,
    error_event_after_thoughts,
    filtered,
    timeout_408,
    overloaded_with_usage,
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fails", FAILS)
def test_each_attempt_is_billed(hostile, fails, stream) -> None:
    team = f"r-{fails.__name__}-{stream}"
    hostile.play("any", fails, honest)
    answer = ask(hostile, team, stream=stream)
    rows = hostile.judge(team)
    print(
        answer.status_code,
        [
            (
                r["attempt_no"],
                r["status"],
                r["http_status"],
                r["basis"],
                r["flag"],
                r["cost_pusd"],
                r["claimed_pusd"],
                r["bound_pusd"],
            )
            for r in rows
        ],
        [c.bill.pusd for c in hostile.sent(team)],
    )

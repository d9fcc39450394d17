"""What `truncation: auto` may leave out, for any conversation; and through the running gateway."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.request.dialects.responses_input import read_conversation
from gateway.request.dialects.truncation import LEFT_OUT, drop_oldest

TEXTS = st.text("ab ", min_size=1, max_size=40)
NOTE = {"role": "user", "content": LEFT_OUT}


@st.composite
def conversations(draw: Any) -> list[dict[str, Any]]:
    """Items of Responses, with calls that came to something."""
    items: list[dict[str, Any]] = []
    if draw(st.booleans()):
        items.append({"role": "developer", "content": draw(TEXTS)})
    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "call", "calls"]))
        if kind in ("user", "assistant"):
            items.append({"role": kind, "content": f"{number} {draw(TEXTS)}"})
            continue
        ids = [f"call_{number}_{index}" for index in range(1 if kind == "call" else 2)]
        items += [{"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"}
                  for name in ids]  # fmt: skip
        shown = draw(st.booleans())
        output: Any = draw(TEXTS)
        if shown:
            output = [{"type": "input_image", "image_url": "https://a.example/b.png"}]
        items += [{"type": "function_call_output", "call_id": name, "output": output}
                  for name in ids]  # fmt: skip
    return read_conversation(None, items).turns.messages()


@given(conversations(), st.integers(0, 400))
def test_what_must_stay_stays_and_the_oldest_goes_first(messages, least_bytes) -> None:
    kept, rounds = messages, 0
    while (less := drop_oldest(kept, least_bytes)) is not None:
        rounds += 1
        plain = [message for message in less if message != NOTE]
        assert len(plain) < len([message for message in kept if message != NOTE])
        places = [next(n for n, m in enumerate(messages) if m is left) for left in plain]
        assert places == sorted(places)
        assert plain[-1] == messages[-1]
        assert [m for m in plain if m["role"] == "system"] == [
            m for m in messages if m["role"] == "system"
        ]
        said = [
            m
            for before, m in pairwise([{"role": "user"}, *messages])
            if m["role"] == "user" and not (before["role"] == "tool" and type(m["content"]) is list)
        ]
        assert not said or said[-1] in plain
        called = {call["id"] for m in plain for call in m.get("tool_calls") or ()}
        told = {m["tool_call_id"] for m in plain if m["role"] == "tool"}
        assert called == told
        spoken = [m for m in less if m["role"] != "system"]
        assert spoken[0]["role"] == "user"
        kept = less
    assert rounds <= len(messages)


def test_as_little_goes_as_is_asked_and_a_sixteenth_at_least() -> None:
    items = [{"role": "user" if n % 2 == 0 else "assistant", "content": "x" * 100}
             for n in range(65)]  # fmt: skip
    messages = read_conversation(None, items).turns.messages()
    assert len(drop_oldest(messages, 0) or ()) == 61
    assert len(drop_oldest(messages, 3000) or ()) == 43
    assert len(drop_oldest(messages, 10**9) or ()) == 1


PATH = "/v1/responses"


def small(found: dict[str, Any], _: dict[str, int]) -> None:
    """`own` has a small context, `wide` a larger one beside it."""
    for name, tokens in (("main", 900), ("wide", 2000)):
        pool = found["pools"].setdefault(name, {**found["pools"]["main"]})
        pool["engine"] = {**found["pools"]["main"]["engine"], "context_tokens": tokens}
    found["models"]["wide"] = {**found["models"]["own"], "targets": ["pool:wide"]}


@pytest.fixture(scope="module")
def stack(running, tmp_path_factory):
    with running(tmp_path_factory.mktemp("host"), adjust=small) as found:
        yield found


def ask(stack, said: int, **asked: Any) -> Any:
    turns = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "word " * 60}
             for n in range(said)]  # fmt: skip
    body = {"model": "own", "max_output_tokens": 5, "input": turns, "store": False, **asked}
    return stack.post(PATH, body)


def test_what_fits_is_sent_whole_and_what_does_not_is_cut_and_named(stack) -> None:
    short = ask(stack, 5, truncation="auto")
    assert short.status_code == 200, short.text
    assert "x-breakeven-ignored" not in short.headers
    assert short.json()["truncation"] == "auto"
    long = ask(stack, 61, truncation="auto")
    assert long.status_code == 200, long.text
    assert long.headers["x-breakeven-ignored"] == "input.oldest"
    assert long.json()["truncation"] == "auto"
    (row,) = stack.settled(long)
    assert 300 < row["input_tokens"] < 900


@pytest.mark.parametrize("asked", [{}, {"truncation": "disabled"}, {"truncation": None}])
def test_without_it_a_long_conversation_is_refused(stack, asked: dict[str, Any]) -> None:
    answer = ask(stack, 61, **asked)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_what_must_stay_and_is_too_long_is_refused(stack) -> None:
    answer = ask(stack, 0, input="word " * 20_000, truncation="auto")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    wrong = ask(stack, 1, truncation="sometimes")
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "truncation")


def test_a_chain_is_cut_as_it_grows(stack) -> None:
    last, cut = None, []
    for _ in range(6):
        said = {"input": "word " * 200, "previous_response_id": last, "truncation": "auto"}
        answer = ask(stack, 0, store=True, **said)
        assert answer.status_code == 200, answer.text
        last = answer.json()["id"]
        cut.append("x-breakeven-ignored" in answer.headers)
    assert (cut[0], cut[-1]) == (False, True)

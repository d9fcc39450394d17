"""Figures of a stream: the last one, those before it, and those of single choices."""

import json

import pytest

from gateway.kinds.stream_usage import (
    USAGE_LIMIT_BYTES,
    StreamUsage,
    UsageTooLong,
    check_usage,
    trailing_usage,
)


def usage(output: int, prompt: int = 9) -> bytes:
    told = {"prompt_tokens": prompt, "completion_tokens": output}
    return json.dumps(told | {"total_tokens": prompt + output}).encode()


def test_the_last_figure_stands_and_the_three_before_it_are_kept() -> None:
    told = StreamUsage(1)
    assert (told.last, told.final, told.replaced) == (None, False, ())
    for output in (1, 2, 2, 3, 4, 5):
        told.take(usage(output), final=output == 5)
    assert (told.last["completion_tokens"], told.final) == (5, True)
    assert [earlier["completion_tokens"] for earlier in told.replaced] == [2, 3, 4]
    told.forget()
    assert (told.last, told.replaced) == (None, ())


def test_told_in_one_choice_it_is_of_all_and_in_several_of_each() -> None:
    told = StreamUsage(2)
    told.take_choice(1, usage(7), final=True)
    assert (told.last["completion_tokens"], told.final) == (7, True)
    told.take_choice(0, usage(5), final=True)
    assert told.last == {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
    assert told.final
    three = StreamUsage(3)
    for index in (0, 1):
        three.take_choice(index, usage(5), final=True)
    assert (three.last["completion_tokens"], three.final) == (10, False), "one says nothing yet"


def test_a_running_figure_of_a_choice_takes_the_place_of_its_own() -> None:
    told = StreamUsage(2)
    for index, output in ((0, 3), (1, 4), (0, 6), (1, 8), (7, 1)):
        told.take_choice(index, usage(output), final=False)
    assert told.last == {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    assert told.replaced[-1]["completion_tokens"] == 14


def test_what_no_counter_can_have_written_is_refused() -> None:
    assert check_usage(b"x" * USAGE_LIMIT_BYTES)
    long = b"x" * (USAGE_LIMIT_BYTES + 1)
    with pytest.raises(UsageTooLong):
        StreamUsage(1).take(long, final=True)
    with pytest.raises(UsageTooLong):
        StreamUsage(2).take_choice(0, long, final=True)


def test_a_figure_is_behind_while_choices_lack() -> None:
    told = StreamUsage(2)
    told.take_choice(0, usage(5), final=True)
    told.take_choice(1, usage(5), final=True)
    assert not told.behind
    three = StreamUsage(3)
    three.take_choice(0, usage(5), final=True)
    three.take_choice(1, usage(5), final=True)
    assert three.behind


def test_behind_an_end_usage_alone_is_read() -> None:
    long = b'data: {"usage": {"a": "%b"}}\n\n' % (b"x" * USAGE_LIMIT_BYTES)
    events = [b": alive\n\n", b"data: [DONE]\n\n", b"data: {}\n\n", b"data: 5\n\n", long]
    assert list(trailing_usage(events)) == []
    told = b'data: {"usage": %b}\n\n' % usage(3)
    elsewhere = b'data: {"x_groq": {"usage": %b}}\n\n' % usage(4)
    found = [json.loads(raw) for raw in trailing_usage([*events, told, elsewhere])]
    assert found == [json.loads(usage(3)), json.loads(usage(4))]


ANTHROPICS = b'{"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1}'


@pytest.mark.parametrize(
    ("before", "after", "figure"),
    [
        (
            ANTHROPICS, b'{"output_tokens": 20}',
            {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 20},
        ),
        (
            usage(0), b'{"completion_tokens": 20, "prompt_tokens_details": null}',
            {"prompt_tokens": 9, "completion_tokens": 20, "prompt_tokens_details": None},
        ),
        (usage(1), usage(20), json.loads(usage(20))),
        (usage(1), b'{"output_tokens": "odd"}', {"prompt_tokens": 9, "output_tokens": "odd"}),
        (usage(1), b'{"cost": 1}', {"cost": 1}),
        (usage(1), b'[{"output_tokens": 2}]', {"unreadable": True}),
        (b'{"total_tokens": 9}', b'{"output_tokens": 20}', {"output_tokens": 20}),
    ],
    ids=["anthropic", "openai", "whole", "odd", "cost", "list", "no-prompt"],
)  # fmt: skip
def test_a_figure_of_the_output_alone_has_the_prompt_that_was_told_before(
    before, after, figure
) -> None:
    """Red before: it could not be read, and the figure of the beginning was the last."""
    told = StreamUsage(1)
    told.take(before, final=True)
    told.take(after, final=True)
    assert told.last == figure

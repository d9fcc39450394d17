"""What a target reported, of several figures and against the text; money is in `test_charging`."""

import json
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from backends.messages_usage import chat_usage
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.reported_usage import (
    Contradiction,
    bounds_of,
    find_contradiction,
    most_output_of,
    most_said_bytes_of,
    read_usage,
    said_bytes_of,
)
from ledger.prices.modellimits import LIMIT_TOKENS, ModelLimits
from router.request_kinds import RequestKind
from router.types import Feature


def attempt(
    *, max_tokens=100, n=1, allowance=0, features=frozenset(), prompt_bytes=400, said="",
    limits=None, has_sound=False,
):  # fmt: skip
    candidate = SimpleNamespace(output_cap=None)
    frozen = SimpleNamespace(
        candidate=candidate, open_end=None, allowance_tokens=allowance, limits=limits,
        prompt_bound=lambda request: request.prompt_tokens_bound,
    )  # fmt: skip
    request = SimpleNamespace(
        kind=RequestKind.CHAT, max_tokens=max_tokens, n=n, prompt_tokens=100,
        prompt_tokens_bound=464, has_sound=has_sound,
    )  # fmt: skip
    message = {"role": "user", "content": said + "x" * prompt_bytes}
    members = {"messages": json.dumps([message]).encode()}
    asked = SimpleNamespace(
        stream=True, features=features, members=members, prompt_bytes=prompt_bytes, n=n
    )
    plan = SimpleNamespace(request=request, asked=asked)
    return SimpleNamespace(plan=plan, step=SimpleNamespace(frozen=frozen), own=False, events=0)


def usage(output, prompt=100, **more):
    return {"prompt_tokens": prompt, "completion_tokens": output, **more}


def streamed(*outputs, said=400, prompt=100):
    *earlier, last = (usage(output, prompt) for output in outputs)
    return AttemptOutcome(
        "finished", 200, last, usage_final=True, said_bytes=said, earlier_usage=tuple(earlier)
    )


@pytest.mark.parametrize(
    ("outputs", "counted", "disputed"),
    [
        ((90,), 90, False),
        ((10, 50, 90), 90, False),
        ((90, 1), 90, True),  # taken back; 400 bytes of text need four tokens at least
        ((90, 20), 90, True),  # both could be, and figures grow
        ((20, 9_000), 20, True),  # more than the text can have
        ((1, 2), 2, False),  # too low for its text: both may be of the beginning
        ((9_500, 9_000), 9_000, False),  # neither can be: the last is judged as it is
        ((9_000, 20), 20, True),  # it took back what nothing bears out
        ((95, 21, 22, 23), 95, True),
    ],
)
def test_of_several_figures_the_largest_possible_one_counts(outputs, counted, disputed) -> None:
    found = read_usage(attempt(max_tokens=10_000), streamed(*outputs))
    assert found is not None
    assert (found.tokens.output, found.disputed) == (counted, disputed)


FIGURES = [
    (usage(0, 300), usage(20, 100), (300, 20, 0)),  # red before: 100 of 300 were booked
    (usage(1, 300), usage(21, 100), (300, 21, 0)),
    (usage(20, num_search_queries=2), usage(20), (100, 20, 2)),
    (usage(20), usage(20, num_search_queries=2), (100, 20, 2)),
    (usage(1, 300), usage(20, 300, prompt_tokens_details={"cached_tokens": 250}), (300, 20, 0)),
]


def test_a_running_figure_that_contradicts_itself_disputes_the_last_one() -> None:
    outcome = streamed(10, 90)
    first = {**outcome.earlier_usage[0], "output_tokens": 9}
    found = read_usage(attempt(), replace(outcome, earlier_usage=(first,)))
    assert (found.tokens.output, found.disputed) == (90, True)
    assert not read_usage(attempt(), outcome).disputed


@pytest.mark.parametrize(("first", "last", "counted"), FIGURES)
def test_of_each_count_the_most_is_booked_and_what_was_taken_back_disputed(first, last, counted):
    outcome = AttemptOutcome(
        "finished", 200, last, usage_final=True, said_bytes=100, earlier_usage=(first,)
    )
    found = read_usage(attempt(), outcome)
    tokens = found.tokens
    assert (tokens.prompt, tokens.output, tokens.searches) == counted
    alone = read_usage(attempt(), replace(outcome, earlier_usage=())).tokens
    assert found.disputed is (alone != tokens)


@pytest.mark.parametrize(
    ("output", "said", "against"),
    [(90, 400, None), (1, 400, Contradiction.TOO_LOW), (900, 400, Contradiction.TOO_HIGH)],
)
def test_the_text_speaks_against_a_figure(output, said, against) -> None:
    outcome = streamed(output, said=said)
    found = read_usage(attempt(max_tokens=10_000), outcome)
    assert found is not None
    assert find_contradiction(found, attempt(), outcome) is against
    running = AttemptOutcome("client_gone", 499, usage(output), said_bytes=said)
    assert find_contradiction(found, attempt(), running) is None, "a running figure lags"


@pytest.mark.parametrize(
    ("output", "said", "whole", "broken"),
    [
        (90, 400, None, None),
        (1, 400, Contradiction.TOO_LOW, Contradiction.TOO_LOW),
        (900, 400, Contradiction.TOO_HIGH, None),  # it may have kept back a call of a tool
    ],
)
def test_the_text_speaks_against_a_figure_beside_the_last_words(
    output, said, whole, broken
) -> None:
    """Red before: 5,000 bytes for one token, without a mark, if it stood in a chunk of words."""
    for status, against in (("finished", whole), ("upstream_error", broken)):
        outcome = AttemptOutcome(status, 200, usage(output), said_bytes=said)
        found = read_usage(attempt(max_tokens=10_000), outcome)
        assert find_contradiction(found, attempt(), outcome) is against
        behind = replace(outcome, usage_behind=True)
        assert find_contradiction(found, attempt(), behind) is None, "it is of the beginning"


@pytest.mark.parametrize(
    ("members", "against"),
    [
        ({"echo": b"true"}, None),
        ({"echo": b"false"}, Contradiction.TOO_LOW),
        ({"messages": b'[{"content":"a","prefix": true}]'}, None),
        ({"messages": b'[{"content":"\\"prefix\\": true"}]'}, Contradiction.TOO_LOW),
    ],
)
def test_text_of_the_prompt_in_an_answer_is_not_the_models(members, against) -> None:
    asking = attempt(prompt_bytes=400)
    asking.plan.asked.members |= members
    outcome = streamed(1, said=500)
    found = read_usage(asking, outcome)
    assert found is not None
    assert find_contradiction(found, asking, outcome) is against
    more = streamed(1, said=700)  # the prompt, and 300 bytes of one token
    assert find_contradiction(found, asking, more) is Contradiction.TOO_LOW


def test_a_prompt_of_too_few_tokens_is_estimated_and_disputed() -> None:
    found = read_usage(attempt(prompt_bytes=4000), streamed(90, prompt=0))
    assert found is not None
    assert (found.tokens.input, found.basis, found.disputed) == (100, "estimated", True)


@pytest.mark.parametrize(
    ("prompt", "cached", "prompt_bytes", "tokens"),
    [
        ({"prompt_tokens": 30}, 20, 4000, (30, 20)),  # 30 in all are too few
        ({"input_tokens": 2000}, 1900, 400, (100, 1900)),  # 3,900 in all are too many
        ({"prompt_tokens": 300}, 200, 400, (100, 200)),  # either may be: OpenAI's name says which
    ],
)
def test_cached_tokens_are_where_the_prompts_bounds_let_them_be(
    prompt, cached, prompt_bytes, tokens
) -> None:
    told = {**prompt, "cache_read_input_tokens": cached, "completion_tokens": 9}
    outcome = AttemptOutcome("finished", 200, told, usage_final=True, said_bytes=40)
    found = read_usage(attempt(prompt_bytes=prompt_bytes), outcome)
    assert found is not None
    assert (found.tokens.input, found.tokens.cached, found.disputed) == (*tokens, False)


@pytest.mark.parametrize("features", [frozenset({Feature.IMAGES}), frozenset({Feature.N})])
@pytest.mark.parametrize("said", [";base64,", "data:image/png;base64,AAAA "])
def test_nothing_beside_a_text_makes_its_tokens_fewer(features, said) -> None:
    """A picture, and a word of its data's form, made one token of any prompt true."""
    asking = attempt(prompt_bytes=4000, said=said, features=features)
    found = read_usage(asking, streamed(9, prompt=1))
    assert (found.tokens.input, found.disputed) == (100, True)


def test_a_stated_context_bounds_what_a_model_read() -> None:
    asking = attempt(prompt_bytes=400_000, limits=ModelLimits(100, 2000))
    assert not read_usage(asking, streamed(9, prompt=2000)).disputed
    assert read_usage(asking, streamed(9, prompt=1999)).disputed
    unstated = attempt(prompt_bytes=400_000, limits=ModelLimits(100, LIMIT_TOKENS))
    assert read_usage(unstated, streamed(9, prompt=2000)).disputed


def told(output, said, **more):
    return AttemptOutcome("finished", 200, usage(output), usage_final=True, said_bytes=said, **more)


@pytest.mark.parametrize(
    ("output", "against"), [(8, None), (900, None), (9_000, Contradiction.TOO_HIGH)]
)
def test_quoted_pages_are_no_words_and_may_be_some(output, against) -> None:
    """They make no figure too low, and hide none that is too high for all that came."""
    asking = attempt(max_tokens=10_000)
    outcome = told(output, 400, most_said_bytes=4_000)
    assert find_contradiction(read_usage(asking, outcome), asking, outcome) is against
    quoted = {"content": "x" * 400, "annotations": ["x" * 3600]}
    body = json.dumps({"choices": [{"message": quoted}]}).encode()
    whole = told(output, 0, answer=body)
    assert find_contradiction(read_usage(asking, whole), asking, whole) is against
    assert (said_bytes_of(asking, whole), most_said_bytes_of(asking, whole)) == (400, 4000)


def test_a_word_of_a_pictures_form_hides_no_figure() -> None:
    asking = attempt(max_tokens=10_000)
    for text, against in (
        ("ok;base64,", Contradiction.TOO_HIGH),
        ("data:image/png;base64," + "A" * 900, None),
    ):
        body = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        outcome = told(4000, 0, answer=body)
        assert find_contradiction(read_usage(asking, outcome), asking, outcome) is against


DETAILS = "completion_tokens_details"


@pytest.mark.parametrize(
    ("details", "member", "outcome", "against"),
    [
        ({"rejected_prediction_tokens": 8000}, None, {}, Contradiction.TOO_HIGH),
        ({"rejected_prediction_tokens": 8000}, "prediction", {}, None),
        ({"audio_tokens": 7990}, None, {}, Contradiction.TOO_HIGH),
        ({"audio_tokens": 7990}, None, {"spoken": True}, None),
        ({"audio_tokens": 7990}, "sound", {}, None),
    ],
)
def test_what_nobody_asked_for_hides_no_figure(details, member, outcome, against) -> None:
    asking = attempt(max_tokens=10_000, has_sound=member == "sound")
    if member == "prediction":
        asking.plan.asked.members["prediction"] = b"{}"
    counted = usage(8000, **{DETAILS: details})
    whole = AttemptOutcome("finished", 200, counted, usage_final=True, said_bytes=40, **outcome)
    assert find_contradiction(read_usage(asking, whole), asking, whole) is against


def test_what_no_model_has_to_read_is_not_missing_in_a_prompts_figure() -> None:
    """A voice, a vendor's member, or a schema beside a short text: only the text is surely read."""
    spoken = attempt(prompt_bytes=60)
    spoken.plan.asked.members["audio"] = b"x" * 400
    spoken.plan.asked.prompt_bytes = 460
    found = read_usage(spoken, streamed(90, prompt=1))
    assert (found.tokens.prompt, found.disputed) == (1, False)


@pytest.mark.parametrize(("output", "disputed"), [(1, True), (90, False)])
def test_totals_that_their_own_list_contradicts_are_disputed(output, disputed) -> None:
    call = {"type": "message", "input_tokens": 100, "output_tokens": output}
    told = chat_usage({"input_tokens": 100, "output_tokens": 90, "iterations": [call]})
    outcome = AttemptOutcome("finished", 200, told, usage_final=True, said_bytes=400)
    found = read_usage(attempt(), outcome)
    assert (found.tokens.output, found.disputed) == (90, disputed)
    begun = chat_usage({"input_tokens": 100, "output_tokens": 1}, begun=True)
    found = read_usage(attempt(), replace(outcome, earlier_usage=(begun,)))
    assert (found.tokens.output, found.disputed) == (90, disputed), "a start says nothing of it"


def test_bounds_are_those_of_the_hold() -> None:
    assert most_output_of(attempt(max_tokens=100, n=3, allowance=50)) == 450
    bounds = bounds_of(attempt(max_tokens=None))
    assert (bounds.told, bounds.prompt) == (False, 464)
    assert bounds_of(attempt(max_tokens=7)).told


def test_nothing_that_can_be_read_is_nothing() -> None:
    assert read_usage(attempt(), AttemptOutcome("finished", 200, None)) is None
    assert read_usage(attempt(), AttemptOutcome("finished", 200, {"prompt_tokens": "7"})) is None


def test_an_answer_in_one_piece_is_measured_by_its_words() -> None:
    body = json.dumps({"choices": [{"message": {"content": "four"}}]}).encode()
    assert said_bytes_of(attempt(), AttemptOutcome("finished", 200, answer=body)) == 4
    assert said_bytes_of(attempt(), AttemptOutcome("finished", 200, said_bytes=9)) == 9


@pytest.mark.parametrize(("said", "most"), [(9, 0), (9, 40)])
def test_of_a_stream_all_that_may_be_text_is_no_less_than_its_text(said, most) -> None:
    """What came in places of no text is counted for streams that had such places alone."""
    outcome = AttemptOutcome("finished", 200, said_bytes=said, most_said_bytes=most)
    assert most_said_bytes_of(attempt(), outcome) == max(said, most)


def test_of_vectors_no_text_can_have_been_said() -> None:
    asking = attempt()
    asking.plan.request.kind = RequestKind.EMBEDDING
    body = json.dumps({"data": [{"embedding": [0.5]}], "choices": [{"text": "x" * 9}]}).encode()
    outcome = AttemptOutcome("finished", 200, answer=body)
    assert most_said_bytes_of(asking, outcome) == 0
    asking.plan.request.kind = RequestKind.CHAT
    assert most_said_bytes_of(asking, outcome) == 9

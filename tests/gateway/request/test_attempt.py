"""One try: its id, its tokens on the board, and what is known when it is cut."""

import weakref
from types import SimpleNamespace

import msgspec
import pytest

from backends.sending import Transmission
from gateway.fleet.gap_counts import PACE_BOUNDS_S
from gateway.kinds.native_request import NativeRequest
from gateway.request.attempt import TELL_S, Attempt, CandidateQueue


class Flight:
    def __init__(self) -> None:
        self.grown: list[int] = []
        self.firsts = 0

    def first_token(self, now_s) -> None:
        self.firsts += 1

    def add_tokens(self, tokens: int) -> None:
        self.grown.append(tokens)


class Plan:
    """What `CandidateQueue` and `Attempt` know of one."""

    request_id = "req_1"

    def __init__(self, order) -> None:
        self.decision = SimpleNamespace(order=tuple(order))

    def reduce_to(self, verdict) -> "Plan":
        return Plan([verdict])


def attempt(flight: Flight | None = None) -> Attempt:
    step = SimpleNamespace(frozen=SimpleNamespace(target=SimpleNamespace(own=True)))
    return Attempt(SimpleNamespace(request_id="req_1"), step, 2, 1.0, holds=(), flight=flight)


def test_it_is_named_after_its_request() -> None:
    assert attempt().id == "req_1.2"
    assert attempt().own


@pytest.mark.parametrize("takes", [True, False])
def test_what_its_target_does_not_get_is_told(takes: bool) -> None:
    this_attempt = attempt()
    asked = SimpleNamespace(
        ignored=("api_key",),
        template_arguments=True,
        standard_tier=False,
        native=None,
        translated=None,
    )
    this_attempt.plan.asked = asked
    this_attempt.step.frozen.target.speaks_messages = False
    this_attempt.step.frozen.target.template_arguments = takes
    this_attempt.transmission = Transmission()
    this_attempt.transmission.ignored = ("top_k",)
    arguments = () if takes else ("chat_template_kwargs",)
    assert this_attempt.ignored_members == ("api_key", *arguments, "top_k")


def test_what_goes_whole_loses_less_than_its_translation() -> None:
    this_attempt = attempt()
    native = NativeRequest({}, ignored=("speed",))
    asked = SimpleNamespace(
        ignored=("speed", "thinking"),
        template_arguments=False,
        standard_tier=False,
        native=native,
        translated={},
    )
    this_attempt.plan.asked, this_attempt.step.frozen.target.tells_users = asked, False
    for speaks, told in ((True, ("speed",)), (False, ("speed", "thinking"))):
        this_attempt.step.frozen.target.speaks_messages = speaks
        assert this_attempt.ignored_members == told


@pytest.mark.parametrize("takes", [True, False])
def test_marks_and_users_that_a_target_is_not_told_are_named(takes: bool) -> None:
    """Red before: a session that counts on a provider's cache heard nothing of it."""
    this_attempt = attempt()
    native = NativeRequest({"metadata": msgspec.Raw(b'{"user_id":"u"}')})
    asked = SimpleNamespace(
        ignored=("metadata.user_id",), template_arguments=False, standard_tier=False, native=native,
        translated={"messages": b"", "tools": b""},
    )  # fmt: skip
    this_attempt.plan.asked = asked
    target = this_attempt.step.frozen.target
    target.speaks_messages, target.takes_marks, target.tells_users = True, takes, takes
    assert this_attempt.ignored_members == (() if takes else ("metadata.user_id",))
    target.speaks_messages = False
    marks = () if takes else ("messages.cache_control", "tools.cache_control")
    assert this_attempt.ignored_members == ("metadata.user_id", *marks)


def test_content_moves_times_and_promises() -> None:
    flight = Flight()
    this_attempt = attempt(flight)
    this_attempt.observe_content(2.0, 1)
    this_attempt.observe_content(3.0, 4)
    assert (this_attempt.first_token_s, this_attempt.last_token_s, this_attempt.events) == (
        2.0,
        3.0,
        4,
    )
    assert flight.grown == [1, 3]
    attempt().observe_content(2.0, 1)  # an API's attempt has nothing on the board


def test_gaps_between_arrivals_are_counted_by_their_length() -> None:
    this_attempt = attempt()
    assert (this_attempt.gaps, this_attempt.decode_s) == (None, 0.0)
    for now_s in (2.0, 2.0005, 2.0305, 2.0605, 9.0605):
        this_attempt.observe_content(now_s, 1)
    assert this_attempt.gaps is not None
    counted = {
        bound: n for bound, n in zip((*PACE_BOUNDS_S, None), this_attempt.gaps, strict=True) if n
    }
    assert counted == {0.001: 1, 0.05: 2, None: 1}
    assert this_attempt.decode_s == 9.0605 - 2.0


def test_the_board_hears_of_the_first_chunk_at_once_and_of_others_together() -> None:
    flight = Flight()
    this_attempt = attempt(flight)
    for place in range(9):
        this_attempt.observe_content(2.0 + place * 0.3 * TELL_S, place + 1)
    assert flight.firsts == 3
    assert flight.grown == [1, 4, 4]
    assert this_attempt.events == 9
    assert this_attempt.last_token_s == 2.0 + 8 * 0.3 * TELL_S


def test_what_was_not_chosen_is_let_go_when_the_answer_begins() -> None:
    """Whoever failed before it has the others still: the control."""
    verdicts = [Flight() for _ in range(3)]  # anything that can be watched
    watched = [weakref.ref(verdict) for verdict in verdicts]
    tries = CandidateQueue(Plan(verdicts))
    step = SimpleNamespace(verdict=tries.next(), frozen=None)
    assert step.verdict is verdicts[0]
    attempt = Attempt(tries.plan, step, 1, 1.0, holds=(), tries=tries)
    del verdicts
    assert [ref() is None for ref in watched] == [False, False, False]
    attempt.start_answer()
    assert [ref() is None for ref in watched] == [False, True, True]
    assert tries.next() is None
    assert attempt.plan is tries.plan


def test_candidates_are_tried_in_their_order() -> None:
    verdicts = [SimpleNamespace(name=name) for name in "abc"]
    tries = CandidateQueue(Plan(verdicts))
    assert [tries.next() for _ in range(4)] == [*verdicts, None]

"""The words of spans and histograms: those of the conventions where they have any."""

import pytest

from gateway.telemetry.otel import genai_attributes
from router.request_kinds import RequestKind


def test_every_kind_of_request_has_its_operation(plan) -> None:
    assert len({genai_attributes.operation(plan(kind=kind)) for kind in RequestKind}) == len(
        RequestKind
    )
    assert genai_attributes.operation(plan(kind=RequestKind.COMPLETION)) == "text_completion"


@pytest.mark.parametrize(
    ("given", "said"), [("xai", "x_ai"), ("openai", "openai"), ("ours", "ours"), (None, "x/y")]
)
def test_a_provider_goes_by_its_name_in_the_conventions(step, given, said) -> None:
    assert (
        genai_attributes.provider(step(own=False, name="x/y", provider=given).frozen.target) == said
    )


def test_an_own_engine_is_vllm(step) -> None:
    assert genai_attributes.provider(step().frozen.target) == "vllm"


def test_an_ending_says_tokens_with_what_was_cached_and_its_cost(ending) -> None:
    said = genai_attributes.of_ending(ending(finish_reason="length", slo_met=False))
    assert said["gen_ai.usage.input_tokens"] == 40
    assert said["gen_ai.usage.cache_read.input_tokens"] == 10
    assert said["gen_ai.usage.output_tokens"] == 11
    assert said["gen_ai.response.finish_reasons"] == ("length",)
    assert (said["breakeven.cost.pusd"], said["breakeven.slo.met"]) == (42, False)


def test_what_is_not_known_is_not_said(ending) -> None:
    said = genai_attributes.of_ending(ending(cost_pusd=None, ttft_us=None))
    assert not {"breakeven.cost.pusd", "breakeven.slo.met", "error.type"} & set(said)
    assert "gen_ai.response.time_to_first_chunk" not in said


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        ("finished", None, None),
        ("client_gone", None, None),
        ("upstream_error", "connect", "connect"),
        ("timeout", None, "timeout"),
    ],
)
def test_a_client_that_left_is_no_failure(ending, status, error, said) -> None:
    assert genai_attributes.error_of(ending(status=status, error=error)) == said


def test_a_decision_tells_what_was_chosen_among(plan) -> None:
    said = genai_attributes.of_decision(plan())
    assert said["breakeven.decision.candidates"] == 2
    assert "breakeven.decision.target" not in said  # nothing was chosen


def test_an_attempt_tells_where_it_goes_and_what_was_expected(plan, step) -> None:
    said = genai_attributes.of_attempt("req_1.2", 2, plan(), step())
    assert (said["breakeven.target"], said["breakeven.backend"]) == ("pool:main/0", "own")
    assert said["breakeven.ttft.predicted"] == pytest.approx(0.12)


def test_a_request_is_told_by_its_route(plan) -> None:
    assert genai_attributes.of_request("req_1", "/v1/x")["http.route"] == "/v1/x"

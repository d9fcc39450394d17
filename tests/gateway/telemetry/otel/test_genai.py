"""The conventions' histograms, read back from the SDK."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gateway.telemetry.otel.genai import GenAi
from ledger.journals.records import TokenCounts


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def genai(reader) -> GenAi:
    meter = MeterProvider([reader]).get_meter("test")
    return GenAi(meter, frozenset({"chat"}), frozenset({"pool:main/0"}))


def points(reader) -> dict[str, list]:
    data = reader.get_metrics_data()
    scope = data.resource_metrics[0].scope_metrics[0]
    return {
        metric.name.removeprefix("gen_ai.").removeprefix("client."): list(metric.data.data_points)
        for metric in scope.metrics
    }


def test_an_attempt_is_counted_once_in_each(genai, reader, plan, step, ending) -> None:
    genai.record_attempt(plan(), step(), ending())
    found = points(reader)
    assert {name: sum(item.count for item in each) for name, each in found.items()} == {
        "operation.duration": 1,
        "operation.time_to_first_chunk": 1,
        "operation.time_per_output_chunk": 1,
        "server.time_per_output_token": 1,
        "token.usage": 2,
    }
    assert found["operation.duration"][0].sum == pytest.approx(0.6)
    for name in ("operation.time_per_output_chunk", "server.time_per_output_token"):
        assert found[name][0].sum == pytest.approx(0.05)
    assert {item.attributes["gen_ai.token.type"]: item.sum for item in found["token.usage"]} == {
        "input": 40,
        "output": 11,
    }


def test_several_choices_are_decoded_side_by_side(genai, reader, plan, step, ending) -> None:
    genai.record_attempt(plan(n=2), step(), ending())
    assert points(reader)["operation.time_per_output_chunk"][0].sum == pytest.approx(0.5 * 2 / 9)


def test_an_answer_in_one_piece_has_no_first_token(genai, reader, plan, step, ending) -> None:
    genai.record_attempt(plan(), step(), ending(ttft_us=None))
    assert "operation.time_to_first_chunk" not in points(reader)


def test_one_token_has_no_time_between_tokens(genai, reader, plan, step, ending) -> None:
    genai.record_attempt(plan(), step(), ending(tokens=TokenCounts(input=3, output=1)))
    assert not points(reader).keys() & {
        "operation.time_per_output_chunk", "server.time_per_output_token",
    }  # fmt: skip


def test_names_of_no_configuration_share_a_series(genai, reader, plan, step, ending) -> None:
    for number in range(50):
        genai.record_attempt(
            plan(f"x/{number}"), step(own=False, name=f"x/{number}", provider="x"), ending()
        )
    (item,) = points(reader)["operation.duration"]
    assert item.count == 50
    assert (
        item.attributes["gen_ai.request.model"] == item.attributes["breakeven.target"] == "_OTHER"
    )


def test_a_failure_is_a_series_of_its_own(genai, reader, plan, step, ending) -> None:
    genai.record_attempt(plan(), step(), ending())
    genai.record_attempt(plan(), step(), ending(status="upstream_error", error="connect"))
    kinds = {item.attributes.get("error.type") for item in points(reader)["operation.duration"]}
    assert kinds == {None, "connect"}

"""Samples and streams become lines: counters become rates, restarts are counted, ends are told."""

from dataclasses import replace

import pytest

from dashboard.data import reads
from dashboard.sections.enginelines import (
    gauge,
    rate,
    restarts,
    sequences,
    steps,
    tokens_per_dollar,
    typical_series,
)
from dashboard.viewer_identity import AT_THIS_MACHINE
from ledger.fleet.samples import FleetSample
from ledger.queries.reads import StreamedAnswer

S = 10**6


def row(engine: str, second: int, total: int | None) -> FleetSample:
    return FleetSample(
        second * S, "llama", engine, "healthy", 1, 0, 5, 5, 0, total, 0, 0, 0, load_ppm=0, age_us=0
    )


HISTORY = [
    row("a", 0, 100), row("b", 0, 5), row("a", 10, 300), row("b", 10, None),
    row("a", 20, 50), row("a", 30, 60),  # the counter fell: a restart
]  # fmt: skip


def test_rates_are_per_engine_and_skip_restarts() -> None:
    assert [(step["kind"], step["value"]) for step in steps(HISTORY, "output_tokens_total")] == [
        ("a", 200), ("a", 10),
    ]  # fmt: skip
    assert [step["value"] for step in rate(HISTORY, "output_tokens_total")] == [20.0, 1.0]


def test_a_restart_is_a_counter_that_fell() -> None:
    assert restarts(HISTORY) == {"a": 1, "b": 0}
    assert restarts([row("a", 0, 100), row("a", 10, 100), row("a", 20, 101)]) == {"a": 0}


def test_what_is_not_known_is_not_drawn() -> None:
    known = replace(row("a", 0, 1), kv_usage_ppm=250_000)
    unknown = replace(row("a", 10, 1), kv_usage_ppm=None)
    records = gauge([known, unknown], "kv_usage_ppm", -1e-6, offset=1.0)
    assert [record["value"] for record in records] == [0.75]
    several = {
        (sequence["kind"], sequence["style"]) for sequence in sequences([known, row("b", 0, 1)])
    }
    assert several == {(kind, style) for kind in "ab" for style in ("running", "waiting")}


def streams(engine: str, lengths_us: list[int | None]) -> list[StreamedAnswer]:
    return [StreamedAnswer(n * S, engine, 1, us, f"r{n}", 2) for n, us in enumerate(lengths_us)]


def test_each_point_is_of_as_many_streams() -> None:
    lengths = [*range(1, 11), None, *range(101, 111)]
    records = typical_series(streams("a", lengths), lambda item: item.tpot_us)
    assert [(each_record["kind"], each_record["style"]) for each_record in records] == [
        ("a", "p50"),
        ("a", "p95"),
    ] * 4
    shown = [round(record["value"] * S) for record in records]
    assert shown == [3, 5, 8, 10, 103, 105, 108, 110], "five at each point, and none of the unknown"
    both = typical_series([*streams("a", [5]), *streams("b", [7])], lambda item: item.tpot_us)
    assert [(side["kind"], side["style"]) for side in both] == [
        (kind, style) for kind in "ab" for style in ("p50", "p95")
    ]
    assert typical_series([], lambda item: item.tpot_us) == []


def test_tokens_for_a_dollar_are_of_closed_hours(books) -> None:
    filled = books(peak=20.0, days=2)
    view = reads.DashboardView(filled.url, "24 h", None, filled.now_us, who=lambda: AT_THIS_MACHINE)
    survey = reads.survey(view)
    records = tokens_per_dollar(survey)
    hours = [cell for cell in survey.hours if cell.start_us >= view.scope.start_us]
    assert 20 <= len(records) <= len(hours)
    first = survey.hours[0]
    asked = sum(
        settled.tokens.prompt + settled.tokens.output
        for opened, settled in filled.pairs
        if opened.backend == "own"
        and max(first.start_us, view.scope.start_us)
        <= opened.opened_us
        < first.start_us + survey.bucket_us
    )
    assert records[0]["value"] == pytest.approx(asked * 10**12 / first.bill_pusd)

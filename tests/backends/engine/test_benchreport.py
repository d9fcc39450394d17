"""A benchmark as a document: figures, both bases of cost, and what `engine fit` reads back."""

import json
import random
from decimal import Decimal

import pytest

from backends.engine.benchfigures import BenchSlo, RequestSample
from backends.engine.benchload import PromptShape, closed_load, poisson_load
from backends.engine.benchreport import BenchReport, document, run_of
from backends.simulator.measurements import read


def samples(count: int, every_s: float) -> list[RequestSample]:
    return [RequestSample(every_s * place, 512, 256, 0.1, 5.2) for place in range(count)]


def made(usd: str | None = "3.50") -> BenchReport:
    rng = random.Random(1)
    runs = [
        run_of(
            poisson_load(rate, 8, PromptShape(512, 256), rng),
            samples(8, 1 / rate),
            BenchSlo(ttft_s=0.5),
        )
        for rate in (0.5, 1.0)
    ]
    about = {"model": "m", "url": "http://engine/v1"}
    return BenchReport(about, BenchSlo(), tuple(runs), None if usd is None else Decimal(usd))


def test_both_bases_of_cost_are_given_and_differ():
    item = document(made())["runs"][0]["pusd_per_million"]
    assert item["output"] > 2 * item["input+output"] > 0
    assert all(isinstance(value, int) for value in item.values())


def test_without_a_rate_there_is_no_cost():
    bench = document(made(None))
    assert bench["usd_per_hour"] is None
    assert "pusd_per_million" not in bench["runs"][0]


def test_the_best_run_has_the_most_good_requests():
    bench = made()
    assert bench.best is bench.runs[1]
    assert bench.is_open_loop
    assert document(bench)["saturation"] == {"at": None, "unit": "requests/s"}


def test_what_is_written_is_what_a_fit_reads(tmp_path):
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(document(made())))
    runs = read(path)
    assert list(runs) == ["0.5", "1"]
    assert len(runs["1"]) == 8
    assert runs["1"][1].start_s == pytest.approx(1.0)
    assert (runs["1"][0].prompt_tokens, runs["1"][0].e2e_s) == (512, 5.2)


def test_failed_requests_are_told_and_not_fitted(tmp_path):
    gone = RequestSample(0.0, 0, 0, 0.1, 0.1, error="gone")
    run = run_of(closed_load(2, 2, PromptShape(1, 1)), [gone, *samples(1, 1.0)], BenchSlo())
    found = document(BenchReport({}, BenchSlo(), (run,)))["runs"][0]
    assert found["errors"] == ["gone"]
    assert len(found["requests"]) == 1

"""`breakeven engine fit`: a model and what it misses; mistakes in one line."""

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backends.simulator.fit import simulate
from backends.simulator.measurements import MeasuredRequest
from backends.simulator.shape import EngineShape
from backends.simulator.shapefile import load
from backends.stepmodel import FittedStepModel
from gateway.cli.app import app

TRUTH = EngineShape(FittedStepModel(5e-3, 2e-5, 3e-8, 3e-5, 1e-2), blocks=3001)


def fit(*words: str):
    return CliRunner().invoke(app, ["engine", "fit", *words])


def measured(path: Path, *rates: int) -> str:
    """A small bench of a known engine at these rates."""
    rng, lines = random.Random(3), ["offered_rate,start_s,input_tokens,output_tokens,ttft_s,e2e_s"]
    for rate in rates:
        at_s, asked = 0.0, []
        for _ in range(30):
            at_s += rng.expovariate(rate)
            asked.append(MeasuredRequest(at_s, rng.randint(50, 600), rng.randint(5, 90), 1.0, 2.0))
        lines += [
            f"{rate},{item.start_s},{item.prompt_tokens},{item.output_tokens},{item.ttft_s},{item.e2e_s}"
            for item in simulate(TRUTH, asked)
        ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def bench(tmp_path):
    return measured(tmp_path / "bench.csv", 1, 4, 16)


def test_the_shipped_model_is_judged_as_it_is():
    answer = fit("--as-is")
    assert answer.exit_code == 0, answer.output
    for word in ("held out", "saturation", "SLO broken from", "Worst of what is judged", "step ="):
        assert word in answer.stdout
    assert "BEYOND" not in answer.stdout


def test_a_users_own_bench_becomes_a_file(bench, tmp_path):
    out = tmp_path / "engine.json"
    words = ("--kv-tokens", "48000", "--evaluations", "12", "--out", str(out), "--json")
    answer = fit(bench, *words)
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert document["fitted_to"] == ["1", "4", "16"]
    assert len(document["figures"]) >= 10
    assert load(out).kv_capacity_tokens == 48_000
    assert load(out).pace is not None


def test_a_fit_to_calm_runs_alone_says_that_more_load_is_a_guess(tmp_path):
    words = ("--kv-tokens", "48000", "--evaluations", "1")
    crowded, calm = (measured(tmp_path / f"{most}.csv", 1, most) for most in (200, 2))
    assert "is a guess" not in fit(crowded, *words).stdout
    answer = fit(calm, *words)
    assert answer.exit_code == 0
    assert "the model's predictions for higher load are a guess" in " ".join(answer.stdout.split())
    assert json.loads(fit(calm, *words, "--json").stdout)["saturated"] is False
    # Held out, a crowded run is none of those fitted.
    assert json.loads(fit(crowded, *words, "--validate", "--json").stdout)["saturated"] is False


def test_validation_beyond_a_bar_is_status_1(bench):
    answer = fit(bench, "--kv-tokens", "48000", "--evaluations", "1", "--validate")
    assert answer.exit_code == 1
    assert "BEYOND" in answer.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.csv", "--kv-tokens", "99"), "No such file"),
        (("BENCH",), "say --kv-tokens"),
        (("BENCH", "--as-is"), "name no file"),
        (("BENCH", "BENCH", "--kv-tokens", "99"), "is in another file, too"),
    ],
)
def test_mistakes_are_told(bench, words, said):
    answer = fit(*[bench if word == "BENCH" else word for word in words])
    assert answer.exit_code == 1
    assert said in answer.stderr

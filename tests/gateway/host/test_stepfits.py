"""Step-time models: a profile's for simulated engines, measured for others, embeddings too."""

from copy import deepcopy

import httpx
import pytest

from backends.engine.probes import ProbeError
from backends.engine.tasks import TASKS
from backends.simulator.profiles import PROFILES
from backends.simulator.shapefile import save
from gateway.config.settings import parse
from gateway.host import stepfits
from gateway.host.stepfits import Fitted, StepFits, _fit_reading

NAME = "h200-llama-3.1-8b-fp8"


async def test_a_simulated_engines_model_is_its_profiles(stack) -> None:
    fitted = await StepFits(stack.settings, {}).of(stack.runtime.engines[0])
    assert fitted is not None
    assert fitted.step == PROFILES[NAME].shape.step
    assert fitted.source.startswith("simulated: ")


@pytest.mark.parametrize("kind", ["embedding", "rerank", "transcription"])
async def test_an_engine_that_only_reads_is_measured_as_a_line(stack, kind) -> None:
    """The simulated engine reads at its profile's prefill rate, so the line is known."""
    async with httpx.AsyncClient(trust_env=False) as client:
        task = TASKS[kind]
        step = await _fit_reading(task, task.probe, stack.runtime.engines[1], client)
    truth = PROFILES[NAME].shape.step
    assert step.b_s == step.c_s == 0.0
    assert step.d_s >= 1e-9
    assert 0.5 * (truth.t0_s + truth.a_s) < step.t0_s + step.a_s < 20 * (truth.t0_s + truth.a_s)


async def test_what_does_not_answer_is_measured_later(stack, caplog, free_port) -> None:
    seat = stack.runtime.engines[0]
    from msgspec.structs import replace as changed  # noqa: PLC0415  (only here)

    gone = changed(seat, simulated=False, base_url=f"http://127.0.0.1:{free_port}/v1")
    assert await StepFits(stack.settings, {}).of(gone) is None
    assert "cannot be measured" in caplog.text


@pytest.mark.parametrize("answer", [{"results": []}, {"usage": None}, [], {"usage": {}}])
async def test_an_engine_that_does_not_count_what_it_reads_cannot_be_measured(
    stack, answer
) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer))
    async with httpx.AsyncClient(transport=transport) as client:
        task = TASKS["rerank"]
        with pytest.raises(ProbeError, match="prompt_tokens"):
            await _fit_reading(task, task.probe, stack.runtime.engines[1], client)


async def test_a_live_engine_is_measured_through_its_own_http(stack, monkeypatch) -> None:
    """Not known to be simulated, the same engine is probed, and asked for its version."""
    seen: list[str] = []

    async def quick(base_url, name, *, client):
        seen.append(name)
        known = PROFILES[NAME].shape.step
        made = type("Made", (), {})()
        made.step, made.observations, made.seconds, made.error_median = known, 9, 0.1, 0.02
        return made

    from msgspec.structs import replace as changed  # noqa: PLC0415  (only here)

    monkeypatch.setattr(stepfits, "profile", quick)
    monkeypatch.setattr(stepfits, "asdict", lambda step: {"a_s": step.a_s})
    fitted = await StepFits(stack.settings, {}).of(
        changed(stack.runtime.engines[0], simulated=False)
    )
    assert seen == ["llama"]
    assert fitted is not None
    assert fitted.version == "breakeven-simulator"
    assert "9 observations" in fitted.source


@pytest.mark.parametrize(
    ("policies", "ttft_ms", "tpot_ms"),
    [
        ("", 1000.0, 50.0),
        ("policies: [{name: a, slo: {ttft_ms: 300}}, {name: b, slo: {ttft_ms: 900, tpot_ms: 20}}]",
         300.0, 20.0),
    ],
)  # fmt: skip
def test_a_capacity_row_holds_the_step_model_under_the_tightest_promise(
    policies, ttft_ms, tpot_ms
) -> None:
    step = PROFILES[NAME].shape.step
    fits = StepFits(parse(policies, name="t"), {})
    row = fits.capacity(Fitted(step, None, "test"))
    assert (row["slo_ttft_ms"], row["slo_tpot_ms"]) == (ttft_ms, tpot_ms)
    assert [row[f"step_{name}"] for name in ("a_s", "b_s", "c_s", "d_s", "t0_s")] == [
        step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s,
    ]  # fmt: skip
    assert row["source"] == "test"


async def test_a_file_that_was_spoiled_since_the_start_ends_nothing(
    stack, tmp_path, caplog
) -> None:
    path = tmp_path / "engine.json"
    save(path, PROFILES[NAME].shape)
    seat = stack.runtime.engines[0]
    settings = deepcopy(stack.settings)
    object.__setattr__(settings.pools[seat.pool].engine, "model", str(path))
    fitted = await StepFits(settings, {}).of(seat)
    assert fitted is not None
    assert fitted.source == f"simulated: fitted: {path}"
    path.write_text("{}")
    assert await StepFits(settings, {}).of(seat) is None
    assert "no engine model" in caplog.text

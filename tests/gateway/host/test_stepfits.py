"""Step-time models: a profile's for simulated engines, measured for others, embeddings too."""

from copy import deepcopy

import httpx
import msgspec
import pytest

from backends.engine.probes import ProbeError
from backends.engine.tasks import TASKS
from backends.metrics import parse as parse_metrics
from backends.simulator.profiles import PROFILES
from backends.simulator.shapefile import save
from gateway.config.settings import parse
from gateway.host import stepfits
from gateway.host.stepfits import EngineFit, StepFitStore, _fit_reading
from gateway.runtime import EngineReplica
from router.types import StepModel

NAME = "h200-llama-3.1-8b-fp8"


async def test_a_simulated_engines_model_is_its_profiles(stack) -> None:
    fitted = await StepFitStore(stack.settings, {}).measure_model(stack.runtime.engines[0])
    assert fitted is not None
    assert fitted.step == PROFILES[NAME].shape.step
    assert fitted.source.startswith("simulated: ")


@pytest.mark.parametrize("kind", ["embedding", "rerank", "transcription"])
async def test_an_engine_that_only_reads_is_measured_as_a_line(stack, kind) -> None:
    """The simulated engine reads at its profile's prefill rate, so the line is known."""
    async with httpx.AsyncClient(trust_env=False) as client:
        task = TASKS[kind]
        step = await _fit_reading(task, stack.runtime.engines[1], client)
    truth = PROFILES[NAME].shape.step
    assert step.b_s == step.c_s == 0.0
    assert step.d_s >= 1e-9
    assert 0.5 * (truth.t0_s + truth.a_s) < step.t0_s + step.a_s < 20 * (truth.t0_s + truth.a_s)


async def test_what_does_not_answer_is_measured_later(stack, caplog, free_port) -> None:
    seat = stack.runtime.engines[0]
    from msgspec.structs import replace as changed  # noqa: PLC0415  (only here)

    gone = changed(seat, simulated=False, base_url=f"http://127.0.0.1:{free_port}/v1")
    assert await StepFitStore(stack.settings, {}).measure_model(gone) is None
    assert "engine was not measured" in caplog.text


@pytest.mark.parametrize("answer", [{"results": []}, {"usage": None}, [], {"usage": {}}])
async def test_an_engine_that_does_not_count_what_it_reads_cannot_be_measured(
    stack, answer
) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer))
    async with httpx.AsyncClient(transport=transport) as client:
        task = TASKS["rerank"]
        with pytest.raises(ProbeError, match="prompt_tokens"):
            await _fit_reading(task, stack.runtime.engines[1], client)


async def test_a_live_engine_is_measured_through_its_own_http(stack, monkeypatch) -> None:
    """Not known to be simulated, the same engine is probed, and asked for its version."""
    seen: list[str] = []

    async def quick(workload, *, limits, client):
        seen.append(workload.model)
        known = PROFILES[NAME].shape.step
        made = type("Made", (), {})()
        made.step, made.observations, made.seconds, made.error_median = known, 9, 0.1, 0.02
        return made

    from msgspec.structs import replace as changed  # noqa: PLC0415  (only here)

    monkeypatch.setattr(stepfits, "profile", quick)
    monkeypatch.setattr(stepfits, "asdict", lambda step: {"a_s": step.a_s})
    fitted = await StepFitStore(stack.settings, {}).measure_model(
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
    fits = StepFitStore(parse(policies, name="t"), {})
    row = fits.capacity(EngineFit(step, None, "test"))
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
    fitted = await StepFitStore(settings, {}).measure_model(seat)
    assert fitted is not None
    assert fitted.source == f"simulated: fitted: {path}"
    path.write_text("{}")
    assert await StepFitStore(settings, {}).measure_model(seat) is None
    assert "no engine model" in caplog.text


ENGINE = "{{kind: vllm, endpoints: ['http://h/v1'], measure: {0}}}"
POOL = "pools: {{a: {{engine: " + ENGINE + ", gpu: {{type: {1}}}}}}}"
SEAT = EngineReplica("pool:a/0", "a", "http://h/v1", managed=False, simulated=False,
                  served_name="m", max_num_seqs=8, prefill_budget_tokens=2048)  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "as_name"),
    [("H200", "h200-llama-3.1-8b-fp8"), ("NVIDIA H100", "h100-llama-3.1-8b-fp8"),
     ("RTX 4090", "rtx4090-llama-3.1-8b"), ("L4", "rtx4090-llama-3.1-8b")],
)  # fmt: skip
def test_without_measuring_a_model_is_assumed_by_the_gpu(gpu, as_name) -> None:
    fits = StepFitStore(parse(POOL.format("off", gpu), name="t"), {})
    fitted = fits.assume_model(SEAT)
    assert fitted.step == PROFILES[as_name].shape.step
    assert fitted.source == f"assumed: as {as_name} (engine.measure is off)"
    note = fits.note(SEAT, fitted, 7)
    assert (note.setting, note.requests, note.prompt_tokens) == ("off", 0, 0)


@pytest.mark.parametrize(
    ("measure", "most"),
    [("idle", 12), ("IDLE", 12), pytest.param("always", 400, marks=pytest.mark.long)],
)
async def test_an_engine_of_somebody_else_is_measured_with_little(stack, measure, most) -> None:
    """What was sent is counted, and is what the engine itself counts."""
    settings = parse(POOL.format(measure, "CPU"), name="t")
    origin = stack.runtime.engines[0].base_url
    seat = msgspec.structs.replace(SEAT, base_url=origin, served_name="llama")
    for _ in range(5):  # a machine that is late cannot time what comes in one piece
        before = await _served(origin)
        fitted = await StepFitStore(settings, {}).measure_model(seat)
        after = await _served(origin)
        if fitted is not None and is_near(fitted.step):
            break
    assert fitted is not None
    spent = fitted.spent
    assert [new - old for old, new in zip(before, after, strict=True)] == [
        spent.prompt_tokens, spent.output_tokens,
    ]  # fmt: skip
    assert 0 < spent.requests <= most
    if measure != "always":
        assert spent.prompt_tokens < 3_000
        assert spent.output_tokens < 1_000
    assert is_near(fitted.step)


def is_near(step: StepModel) -> bool:
    """Whether a fit is the simulated engine's own model, as far as a busy machine can tell."""
    steps = (step, PROFILES[NAME].shape.step)
    for count, context in ((1, 100), (8, 2000)):
        told, true = (
            each_step.step_s(sequences=count, context_tokens=context, prefill_tokens=0)
            for each_step in steps
        )
        if not 0.5 * true < told < 8 * true:
            return False
    return True


async def _served(origin: str) -> tuple[int, int]:
    async with httpx.AsyncClient(trust_env=False) as client:
        page = (await client.get(origin.removesuffix("/v1") + "/metrics")).text
    sample = parse_metrics(page)
    return sample.prompt_tokens_total or 0, sample.generation_tokens_total or 0


@pytest.mark.parametrize(
    ("changes", "setting"),
    [({}, "idle"), ({"managed": True}, None)],
)
def test_the_setting_is_of_engines_that_somebody_else_runs(changes, setting) -> None:
    fits = StepFitStore(parse(POOL.format("idle", "CPU"), name="t"), {})
    assert fits.measure_setting(msgspec.structs.replace(SEAT, **changes)) == setting


def test_a_bare_off_is_the_setting() -> None:
    """YAML reads it as false."""
    text = POOL.format("off", "CPU")
    assert parse(text, name="t").pools["a"].engine.measure == "off"

"""The rungs as flags, what is left out, and the arithmetic of gains over what was measured."""

import pytest

from backends.engine.ladder import LadderHost, LadderLoad, lines, rungs

GPU = LadderHost(gpu=True, modules=frozenset({"bitsandbytes", "flash_attn", "numba"}))
CLIMB = LadderLoad()


def by_name(host: LadderHost, climb: LadderLoad = CLIMB):
    return {rung.name: rung for rung in rungs(host, climb)}


def test_each_rung_stands_on_one_that_comes_before_it():
    for host in (GPU, LadderHost(gpu=False)):
        seen: set[str] = set()
        for rung in rungs(host, LadderLoad(draft="draft")):
            assert rung.on in seen or (rung.on is None and not seen)
            seen.add(rung.name)


def test_a_rung_of_vllm_differs_from_the_one_below_in_one_thing():
    found = by_name(GPU)
    for name, gone, new in (
        ("+ CUDA graphs", {"--enforce-eager"}, set()),
        ("+ prefix caching", {"--no-enable-prefix-caching"}, {"--enable-prefix-caching"}),
        ("+ chunked prefill", {"--no-enable-chunked-prefill"}, {"--enable-chunked-prefill"}),
        ("+ async scheduling", {"--no-async-scheduling"}, set()),
        ("+ FP8 weights", set(), {"--quantization", "fp8"}),
    ):
        flags, below = set(found[name].flags), set(found[found[name].on].flags)
        assert {each for each in below - flags if each[:2] == "--"} == gone, name
        assert flags - below == new, name
    item, many = found["+ CUDA graphs"].flags, found["+ continuous batching"].flags
    assert item[item.index("--max-num-seqs") + 1] == "1"
    assert many[many.index("--max-num-seqs") + 1] == "256"


def test_without_chunks_a_step_holds_a_whole_prompt():
    """vLLM refuses to start otherwise."""
    flags = by_name(GPU, LadderLoad(prompt=6000))["vLLM, all of it off"].flags
    assert int(flags[flags.index("--max-num-batched-tokens") + 1]) >= int(
        flags[flags.index("--max-model-len") + 1]
    )


def test_what_a_machine_cannot_do_is_left_out_with_its_reason():
    found = by_name(LadderHost(gpu=False))
    assert found["+ 4-bit NF4"].skipped == "bitsandbytes is not in the environment"
    assert found["+ CUDA graphs"].skipped == found["+ FP8 weights"].skipped == "there is no GPU"
    assert found["+ continuous batching"].on == "vLLM, all of it off", "not on what is left out"
    assert "--enforce-eager" in found["+ continuous batching"].flags
    assert not any(rung.skipped for rung in rungs(GPU, CLIMB))
    own = by_name(LadderHost(gpu=True, quantized=True))["+ FP8 weights"]
    assert own.skipped == "the model is quantized already"


def test_what_was_measured_counts_where_it_can_no_longer_be_done():
    made = rungs(LadderHost(gpu=False), CLIMB)
    done = {"naive": entry(0.2, 10.0), "+ 4-bit NF4": entry(0.1, 20.0)}
    found = {line.name: line for line in lines(made, done)}
    assert found["+ 4-bit NF4"].total_tokens == 2.0
    assert found["+ CUDA graphs"].note == "left out: there is no GPU"


def test_weights_that_are_not_there_are_made_up():
    assert "dummy" in by_name(LadderHost(gpu=True, random_weights=True))["+ CUDA graphs"].flags
    assert "dummy" not in by_name(GPU)["+ CUDA graphs"].flags


def entry(ttft_s: float, tokens_s: float) -> dict:
    return {"ttft_s": ttft_s, "tokens_s": tokens_s, "alone_tokens_s": tokens_s / 2,
            "ttft_users_s": ttft_s * 3, "memory_bytes": 1 << 30}  # fmt: skip


def test_gains_are_over_the_rung_below_and_over_the_first():
    done = {
        "naive": entry(0.2, 30),
        "+ SDPA": entry(0.1, 40),
        "+ static batch of 8": entry(0.4, 90),
        "vLLM, all of it off": entry(0.05, 60),
    }
    found = {line.name: line for line in lines(rungs(GPU, CLIMB), done)}
    assert found["naive"].gain_ttft is None
    assert found["+ SDPA"].gain_ttft == pytest.approx(2)
    assert found["+ SDPA"].gain_tokens == pytest.approx(4 / 3)
    batch = found["+ static batch of 8"]
    assert (batch.gain_ttft, batch.total_ttft) == (pytest.approx(0.25), pytest.approx(0.5))
    assert found["vLLM, all of it off"].total_tokens == pytest.approx(2)
    assert found["+ CUDA graphs"].note == "not yet"


def test_a_failure_is_told_and_the_next_is_compared_with_what_lies_below_it():
    done = {"naive": entry(0.2, 30), "+ SDPA": {"failed": "no kernel"},
            "vLLM, all of it off": entry(0.1, 60)}  # fmt: skip
    found = {line.name: line for line in lines(rungs(GPU, CLIMB), done)}
    assert found["+ SDPA"].note == "failed: no kernel"
    assert found["vLLM, all of it off"].note == "over naive"
    assert found["vLLM, all of it off"].gain_ttft == pytest.approx(2)


def test_without_a_first_rung_nothing_is_cumulative():
    found = {line.name: line for line in lines(rungs(GPU, CLIMB), {"+ SDPA": entry(0.1, 40)})}
    assert found["+ SDPA"].total_ttft is None
    assert found["+ SDPA"].gain_tokens is None


def test_a_model_over_two_gpus_is_spread_on_every_rung():
    for rung in rungs(GPU, LadderLoad(gpus=2)):
        flag = "--gpus" if rung.kind == "naive" else "--tensor-parallel-size"
        assert rung.flags[rung.flags.index(flag) + 1] == "2"
    assert not any(
        {"--gpus", "--tensor-parallel-size"} & {*each_rung.flags} for each_rung in rungs(GPU, CLIMB)
    )

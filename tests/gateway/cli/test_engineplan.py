"""`breakeven engine plan`: figures with their arithmetic, formats, layouts, drafts."""

import json
import shlex

import pytest

from backends.engine.catalog import GPUS, find_gpu
from backends.engine.planning.question import PlanFigure
from gateway.cli.engineplan import amount


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_model_that_does_not_fit_has_status_1(model, form, engine):
    assert engine("plan", model, "--gpu", "H200", *form).exit_code == 0
    answer = engine("plan", model, "--gpu", "T4", "--gpus", "1", *form)
    assert answer.exit_code == 1
    assert "does not fit" in answer.stdout
    assert "Status 1 when the model does not fit" in " ".join(
        engine("plan", "--help").stdout.split()
    )


def test_what_vllm_refuses_has_status_1_and_no_flags(model, tmp_path, engine):
    """32 heads are not split by 3; a draft with another vocabulary is none: memory is not all."""
    draft = tmp_path / "draft"
    draft.mkdir()
    other = json.loads((model / "config.json").read_text()) | {"vocab_size": 999}
    (draft / "config.json").write_text(json.dumps(other))
    for words in (("--gpus", 3), ("--draft", draft)):
        answer = engine("plan", model, "--gpu", "H200", *words)
        assert answer.exit_code == 1
        assert "H200: refused" in answer.stdout
        assert "vLLM refuses this" in answer.stdout
        assert "flags: " not in answer.stdout
        told = engine("plan", model, "--gpu", "H200", *words, "--json")
        assert told.exit_code == 1
        document = json.loads(told.stdout)
        assert document["refused"]
        assert document["flags"] == []


def test_a_plan_shows_each_figure_with_its_formula(model, engine):
    answer = engine("plan", model, "--gpu", "H200")
    assert answer.exit_code == 0
    assert "on 1 x H200: fits" in answer.stdout
    assert "flags: " in answer.stdout
    document = json.loads(engine("plan", model, "--gpu", "H200", "--json").stdout)
    figures = {figure["name"]: figure for figure in document["figures"]}
    assert figures["kv_bytes_per_token"]["value"] == 2 * 32 * 8 * 128 * 2
    for figure in figures.values():
        assert figure["formula"]
        shown = figure["name"].removesuffix("_s") if figure["unit"] == "s" else figure["name"]
        assert shown in answer.stdout
    assert "_floor_s" not in answer.stdout, "shown in ms"


def test_a_plan_says_what_users_cost_at_least_on_both_bases(model, engine):
    words = ("plan", model, "--gpu", "H200", "--users", 32, "--usd-per-hour", "3.50")
    answer = engine(*words)
    assert answer.exit_code == 0, answer.output
    figures = {
        figure["name"]: figure for figure in json.loads(engine(*words, "--json").stdout)["figures"]
    }
    both, output = figures["load_usd_per_million"], figures["load_usd_per_million_output"]
    assert output["value"] == pytest.approx(3 * both["value"])
    assert both["value"] == pytest.approx(3.5e6 / 3600 / figures["load_tokens_s"]["value"])
    assert "load_usd_per_million" in answer.stdout
    assert "load_" not in engine("plan", model, "--gpu", "H200").stdout


def test_a_plan_has_formats_layouts_drafts_and_mixed_gpus(model, engine):
    answer = engine("plan", model, "--gpu", "H100", "--draft", model, "--drafted", 3)
    assert answer.exit_code == 0, answer.output
    assert "In other formats" in answer.stdout
    assert "TP2 x PP2" in answer.stdout
    assert "drafting_gain" in answer.stdout
    mixed = engine("plan", model, "--gpu", "H100", "--gpu", "L40S", "--json")
    document = json.loads(mixed.stdout)
    assert (document["gpu"], document["gpus"]) == ("H100 + L40S", 2)
    assert document["layout"] == {"tensor": 2, "pipeline": 1}
    assert sum(choice["advised"] for choice in document["choices"]) == 1
    staged = engine("plan", model, "--gpu", "H100", "--gpus", 1, "--pipeline-parallel", 2)
    assert "--pipeline-parallel-size 2" in staged.stdout
    missing = engine("plan", model, "--gpu", "H100", "--draft", model / "nowhere")
    assert missing.exit_code == 1
    assert "does not exist" in missing.stderr


def test_list_and_plan_say_which_rate_is_measured(model, engine):
    """The list had the data sheet's 4.8 TB/s, the plan 4.3, and both called it the GPU's."""
    h200 = find_gpu("H200")
    assert (h200.bandwidth_bytes_s, h200.measured_bandwidth_bytes_s) == (4.8e12, 4.3e12)
    (row,) = [line for line in engine("list").stdout.splitlines() if line.startswith("H200 ")]
    assert "4.80 (4.30)" in row
    assert f"H200: {h200.measured_source}" in engine("list").stdout
    (row,) = [
        line
        for line in engine("plan", model, "--gpu", "H200").stdout.splitlines()
        if line.startswith("bandwidth")
    ]
    assert "4.30 TB/s" in row
    assert f"measured ({h200.measured_source}); 4.8 TB/s in the data sheet" in row
    (row,) = [
        line
        for line in engine("plan", model, "--gpu", "L4").stdout.splitlines()
        if line.startswith("bandwidth")
    ]
    assert "data sheet (NVIDIA L4 data sheet, 2023" in row
    assert "not measured here" in row


def test_only_compute_is_halved_for_sparsity(model, engine):
    """A data sheet prints its bandwidth as it is."""
    document = json.loads(engine("plan", model, "--gpu", "H200", "--json").stdout)
    formulas = {figure["name"]: figure["formula"] for figure in document["figures"]}
    assert "4.8 TB/s in the data sheet" in formulas["bandwidth"]
    assert "halved" not in formulas["bandwidth"]
    assert "989.5 TFLOP/s in the data sheet" in formulas["compute"]
    assert "halved: printed with sparsity" in formulas["compute"]


def test_an_unknown_gpu_is_answered_with_the_known_ones(model, engine):
    said = engine("plan", model, "--gpu", "H9000").stderr
    assert all(gpu.name in said for gpu in GPUS)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"gpu": "H9000"}, "H9000"), ({"folder": "nowhere"}, "nowhere does not exist")],
)
def test_what_cannot_be_planned_is_told(model, change, said, engine):
    answer = engine("plan", model / change.get("folder", "."), "--gpu", change.get("gpu", "H200"))
    assert answer.exit_code == 1
    assert said in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3 << 29, "B", "1.50 GiB"),
        (131_072, "B", "131,072 B"),
        (0.00872, "s", "8.72 ms"),
        (0.089, "s", "89 ms"),
        (0.9999, "s", "1000 ms"),
        (0.00000049, "s", "0.49 us"),
        (0.000003412, "s", "3.41 us"),
        (0, "s", "0 s"),
        (1.5, "s", "1.50 s"),
        (291_424, "tokens", "291,424 tokens"),
        (8, "", "8"),
    ],
)
def test_amounts_as_people_read_them(value, unit, text):
    assert amount(PlanFigure("x", value, unit, "formula")) == text


@pytest.mark.parametrize("option", ["--tpot-ms", "--usd-per-hour"])
@pytest.mark.parametrize("value", ["inf", "nan"])
def test_what_is_no_amount_is_refused_by_its_option(model, option, value, engine):
    answer = engine("plan", model, "--gpu", "H200", "--users", "4", option, value)
    assert answer.exit_code == 2
    assert option in answer.stderr


def test_flags_can_be_pasted_into_a_shell(model, tmp_path, engine):
    draft = tmp_path / "a draft"
    draft.mkdir()
    (draft / "config.json").write_text((model / "config.json").read_text())
    for named in (draft, draft / "config.json"):
        answer = engine("plan", model, "--gpu", "H200", "--draft", named)
        (line,) = [
            each_line for each_line in answer.stdout.splitlines() if each_line.startswith("flags: ")
        ]
        flags = shlex.split(line.removeprefix("flags: "))
        said = json.loads(flags[flags.index("--speculative-config") + 1])
        assert said["model"] == str(draft)


def test_what_is_named_in_a_models_place_is_told_in_a_line(model, tmp_path, engine):
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF" + bytes(64))
    (tmp_path / "list.json").write_text('{"model_type": ["llama"]}')
    for named, said in (("tiny.gguf", "is GGUF, which cannot be planned"),
                        ("list.json", "models of the type `['llama']` cannot be")):  # fmt: skip
        answer = engine("plan", tmp_path / named, "--gpu", "H200")
        assert answer.exit_code == 1
        assert said in answer.stderr

"""Faults as people and programs read them, and what a slip of the pen may have meant."""

import pytest

from gateway.config.faults import ConfigFault, render, suggest, warning


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ((), ""),
        (("server", "port"), "server.port"),
        (("policies", 0, "slo", "ttft_ms"), "policies[0].slo.ttft_ms"),
        (("models", "openai/*"), "models.openai/*"),
    ],
)
def test_a_place_is_written_as_in_the_settings_table(place, path):
    assert render(place) == path


def test_a_fault_is_one_line_with_file_line_and_path():
    fault = ConfigFault(("models", "a", "wat"), "unknown key", line=7)
    assert fault.text("x.yaml") == "x.yaml:7: models.a.wat: unknown key"
    assert warning(("pools",), "odd").text("x.yaml") == "x.yaml: warning: pools: odd"
    assert ConfigFault((), "not YAML").text("x.yaml") == "x.yaml: not YAML"


def test_a_fault_is_data_for_programs():
    assert warning(("budgets", 1), "odd").document() == {
        "path": "budgets[1]", "line": None, "message": "odd", "severity": "warning",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("chatt", ["chat", "code"], "; did you mean `chat`?"),
        ("OpenAi", ["openai", "groq"], "; did you mean `openai`?"),
        ("H2OO", ["H200", "L4"], "; did you mean `H200`?"),
        ("A100", ["A100-40GB", "A100-80GB", "H100"], "; did you mean `A100-40GB` or `A100-80GB`?"),
        ("zebra", ["chat", "code"], "; there are `chat`, `code`"),
        ("zebra", ["chat"], "; there is `chat`"),
        ("zebra", [f"model-{number}" for number in range(99)], ""),
        ("zebra", [], ""),
    ],
)
def test_the_nearest_name_is_offered(word, known, said):
    assert suggest(word, known) == said


def test_a_word_is_never_offered_for_itself():
    assert "`gpt`" not in suggest("gpt", ["gpt", "chat"])

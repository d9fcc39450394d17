"""What a draft model takes and brings."""

import pytest

from backends.engine.planning.question import DraftModel


def test_a_draft_takes_memory_and_brings_what_its_acceptance_allows(model, planned):
    """0.8 and 5 drafted: 3.69 tokens a pass, not 5; the draft's own steps come off that."""
    draft = DraftModel(model("7b"), 5, 0.8)
    made, plain = (planned("70b-fp8", draft=item) for item in (draft, None))
    assert made["tokens_a_pass"] == pytest.approx((1 - 0.8**6) / 0.2)
    step, small = made["decode_floor_s"], made["draft_step_floor_s"]
    assert made["drafted_token_floor_s"] == pytest.approx((step + 5 * small) / 3.68928)
    assert made["drafting_gain"] == pytest.approx(step / made["drafted_token_floor_s"])
    each = made["kv_bytes_per_token"]
    assert each == plain["kv_bytes_per_token"] + 2 * 32 * 32 * 128 * 2
    left = plain["kv_tokens"] * plain["kv_bytes_per_token"] - made["draft_weight_bytes"]
    assert made["kv_tokens"] == pytest.approx(left / each, abs=2)
    assert made.flags[-1] == '{"method":"draft_model","model":"7b","num_speculative_tokens":5}'
    assert not made.warnings


def test_a_draft_that_brings_nothing_and_one_of_another_vocabulary_are_said(model, planned):
    poor = planned("70b-fp8", draft=DraftModel(model("7b"), 5, 0.2))
    assert poor["drafting_gain"] < 1.0
    assert "costs more than it brings" in poor.warnings[0]
    other = planned("70b-fp8", draft=DraftModel(model("8b")))
    assert "vLLM refuses this draft" in other.warnings[0]
    all_taken = planned("70b-fp8", draft=DraftModel(model("7b"), 3, 1.0))
    assert all_taken["tokens_a_pass"] == 4.0


def test_the_flag_says_where_the_draft_lies(model, planned):
    made = planned("70b-fp8", draft=DraftModel(model("7b"), 5, 0.8, "/models/small"))
    assert '"model":"/models/small"' in made.flags[-1]

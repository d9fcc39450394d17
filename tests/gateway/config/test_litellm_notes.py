"""Why a setting has no place in ours, without a word of what it was set to."""

from gateway.config.deployments import deployment
from gateway.config.litellm_notes import ImportNote, notes_on, reason_not_imported


def test_what_is_read_needs_no_note_and_all_else_has_one() -> None:
    entry = {
        "model_name": "a",
        "litellm_params": {"model": "openai/gpt-4o", "api_key": "os.environ/K", "rpm": 3},
        "model_info": {"mode": "chat", "team": "t"},
        "extra": 1,
    }
    assert list(notes_on("here", entry, deployment(entry, lambda _: None))) == [
        ImportNote("here.litellm_params.rpm", reason_not_imported("rpm")),
        ImportNote("here.model_info.team", "has no counterpart here"),
        ImportNote("here.extra", "has no counterpart here"),
    ]


def test_what_an_own_engine_costs_a_token_is_told() -> None:
    params = {"model": "hosted_vllm/m", "api_base": "http://10.0.0.5/v1"}
    entry = {"litellm_params": params, "model_info": {"input_cost_per_token": 2e-8}}
    (note,) = notes_on("here", entry, deployment(entry, lambda _: None))
    assert note.place == "here.model_info.input_cost_per_token"
    assert "usd_per_hour" in note.text


def test_a_key_in_the_file_is_told_and_not_repeated() -> None:
    entry = {"litellm_params": {"model": "openai/gpt-4o", "api_key": "sk-secret"}}
    (note,) = notes_on("here", entry, deployment(entry, lambda _: None))
    assert note.place == "here.litellm_params.api_key"
    assert "OPENAI_API_KEY" in note.text
    assert "secret" not in note.text

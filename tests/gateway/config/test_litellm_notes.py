"""Why a setting has no place in ours, without a word of what it was set to."""

import pytest

from gateway.config.deployments import deployment
from gateway.config.litellm_notes import (
    ImportLoss,
    ImportNote,
    adapted_note,
    note_on,
    notes_on,
    notes_on_pattern,
)


def test_what_is_read_needs_no_note_and_all_else_has_one() -> None:
    entry = {
        "model_name": "a",
        "litellm_params": {"model": "openai/gpt-4o", "api_key": "os.environ/K", "rpm": 3},
        "model_info": {"mode": "chat", "team": "t"},
        "extra": 1,
    }
    assert list(notes_on("here", entry, deployment(entry, lambda _: None))) == [
        note_on("here.litellm_params.rpm", "rpm"),
        ImportNote("here.model_info.team", "has no counterpart here", warns=False),
        note_on("here.extra", "extra"),
    ]


def test_what_is_off_in_model_info_is_no_loss() -> None:
    params = {"model": "openai/gpt-4o", "api_key": "os.environ/K"}
    entry = {"litellm_params": params, "model_info": {"blocked": False, "access_groups": []}}
    assert list(notes_on("here", entry, deployment(entry, lambda _: None))) == []


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


@pytest.mark.parametrize(
    ("where", "name", "loss"),
    [
        ("model_info", "team_id", "access"),
        ("model_info", "access_groups", "access"),
        ("litellm_params", "temperature", "requests"),  # LiteLLM sends it with each request
        ("litellm_params", "extra_headers", "requests"),
        ("litellm_params", "input_cost_per_second", "prices"),
        ("litellm_params", "tags", "models"),
        ("litellm_params", "max_parallel_requests", "limits"),
        ("model_info", "blocked", "access"),  # its router leaves such an entry out
        ("model_info", "access_windows", "access"),
        ("model_info", "service_tiers", "requests"),
        ("model_info", "tiered_pricing", "prices"),
        ("model_info", "off_peak_pricing", "prices"),
        ("model_info", "ptu_count", "prices"),
    ],
)
def test_what_changes_answers_money_or_access_is_an_error_unless_accepted(
    where, name, loss
) -> None:
    """I10: a note and exit 0 before: every key might use a model that one team had."""
    entry = {"litellm_params": {"model": "openai/gpt-4o"}, "model_info": {}}
    entry[where][name] = 1
    (note,) = notes_on("here", entry, deployment(entry, lambda _: None))
    assert (note.place, note.loss) == (f"here.{where}.{name}", ImportLoss(loss))
    assert (note.rank(), note.rank([loss])) == ("error", "warning")


@pytest.mark.parametrize("name", ["set_verbose", "json_logs", "drop_params", "master_key"])
def test_what_changes_nothing_is_a_note(name) -> None:
    assert note_on("here", name).rank() == "note"


@pytest.mark.parametrize(
    "name", ["allowed_ips", "enforced_params", "custom_auth", "guardrails", "content_filter"]
)
def test_a_restriction_of_access_or_content_is_an_error(name) -> None:
    assert note_on("general_settings.x", name).rank() == "error"
    assert note_on("general_settings.x", "nobody knows it").loss is ImportLoss.SETTINGS


def test_an_account_or_a_region_is_one_for_all_models_and_so_an_error_where_it_differs() -> None:
    """A warning before: prompts of eu-west-1 went to whatever region the environment names."""
    params = {"model": "bedrock/nova", "aws_region_name": "eu-west-1"}
    entry = {"litellm_params": params}
    found = deployment(entry, lambda _: None)
    assert found is not None
    for environ, rank in (({}, "error"), ({"AWS_REGION_NAME": "us-east-1"}, "error"),
                          ({"AWS_REGION_NAME": "eu-west-1"}, "note")):  # fmt: skip
        (note,) = notes_on("here", entry, found, environ)
        assert (note.rank(), note.loss is None) == (rank, rank == "note")
    params["aws_region_name"] = "os.environ/AWS_REGION_NAME"
    assert [note.rank() for note in notes_on("here", entry, found)] == ["note"]
    params["aws_region_name"] = "os.environ/EU"
    assert [note.rank() for note in notes_on("here", entry, found, {"EU": "x"})] == ["error"]


def test_what_a_pattern_of_models_states_beyond_its_provider_is_lost_by_name() -> None:
    """It was dropped without a word, its prices among it."""
    params = {"model": "openai/*", "input_cost_per_token": 1e-6, "timeout": 3, "api_key": "x"}
    told = notes_on_pattern("here", {"litellm_params": params, "model_info": {"mode": "chat"}})
    assert [(note.place.rpartition(".")[2], note.loss) for note in told] == [
        ("input_cost_per_token", ImportLoss.PRICES), ("timeout", ImportLoss.TIMEOUTS),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("max_parallel_requests", "concurrent requests are not limited", "state it in `limits`"),
        ("global_max_parallel_requests", "concurrent requests are not limited", "state it in"),
        ("max_response_size_mb", "`max_tokens`", "state it in `limits`"),
        ("allowed_routes", "every inference path", "--model"),
        ("upperbound_key_generate_params", "`key:*`", "checks keys only"),
        ("default_key_generate_params", "`key:*`", "checks keys only"),
        ("default_team_settings", "`team:NAME`", "every key may use"),
        ("default_team_params", "`team:NAME`", "every key may use"),
        ("rpm_limit", "state it in `limits`", "concurrent requests"),
        ("models", "every key may use the model", "`team:NAME`"),
    ],
)
def test_a_note_names_a_way_that_there_is(name, said, unsaid) -> None:
    """Parallel requests were to be stated in `limits`, which counts requests of a minute."""
    note = note_on("here", name)
    assert note.loss is not None
    assert said in note.text
    assert unsaid not in note.text


def test_a_variable_that_states_something_else_is_to_be_set() -> None:
    note = adapted_note("here", "aws_region_name", "eu-central-1", {"AWS_REGION_NAME": "us-east-1"})
    assert note.rank() == "error"
    assert note.text.endswith(
        "AWS_REGION_NAME, which has another value or none here: set it for this command and where "
        "`breakeven serve` starts"
    )

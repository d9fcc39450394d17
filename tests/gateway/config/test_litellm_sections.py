"""Sections of a LiteLLM proxy beside its models: each has a counterpart, or a note with a rank."""

import pytest

from gateway.config.litellm_import import carry_over

ENTRY = {"model_name": "a", "litellm_params": {"model": "openai/x"}}


def imported(environ: dict | None = None, **sections):
    given = {"model_list": [ENTRY]} | sections
    made = carry_over(given, gpu={}, provider_of=lambda _: None, environ=environ or {})
    return made.document, [(note.place, note.rank()) for note in made.notes]


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"litellm_settings": {"request_timeout": 7}}, {"head_s": 7.0, "whole_s": 7.0}),
        ({"router_settings": {"timeout": 7, "stream_timeout": 2}}, {"head_s": 2.0, "whole_s": 7.0}),
        (
            {"litellm_settings": {"request_timeout": 1200}},
            {"head_s": 1200.0, "whole_s": 1200.0, "total_s": 1260.0},
        ),
    ],
)
def test_a_general_timeout_is_no_limit_on_a_stream_that_flows(sections, expected) -> None:
    document, notes = imported(**sections)
    assert (document["server"], notes) == ({"timeouts": expected}, [])


def test_the_timeout_of_each_try_comes_before_the_routers() -> None:
    """The router's won here: every answer had its seconds."""
    document, notes = imported(
        litellm_settings={"request_timeout": 7, "timeout": 3}, router_settings={"timeout": 9}
    )
    assert document["server"]["timeouts"] == {"head_s": 7.0, "whole_s": 7.0}
    assert notes == [("router_settings.timeout", "note"), ("litellm_settings.timeout", "note")]


def test_a_timeout_that_is_no_number_is_lost() -> None:
    assert imported(litellm_settings={"request_timeout": "soon"})[1] == [
        ("litellm_settings.request_timeout", "error")
    ]


def test_budgets_have_scopes_and_periods() -> None:
    providers = {"openai": {"budget_limit": 3, "time_period": "1d"},
                 "nobody": {"budget_limit": 3, "time_period": "1d"}}  # fmt: skip
    users = {"max_budget": 2, "budget_duration": "1mo", "rpm_limit": 10, "models": ["a"]}
    document, notes = imported(
        router_settings={"provider_budget_config": providers},
        litellm_settings={"default_internal_user_params": users, "max_budget": 9},
    )
    assert document["budgets"] == [
        {"scope": "provider:openai", "usd": "3", "period": "day", "hard": True},
        {"scope": "user:*", "usd": "2", "period": "month", "hard": True},
    ]
    assert document["limits"] == [{"scope": "user:*", "requests_per_minute": 10}]
    assert notes == [
        ("router_settings.provider_budget_config.nobody", "error"),
        ("litellm_settings.default_internal_user_params.models", "error"),
        ("litellm_settings.max_budget", "error"),  # of no calendar window
    ]


def test_alerts_telemetry_and_the_size_of_a_body_have_counterparts() -> None:
    """I9: "has no counterpart here" before."""
    general = {"alerting": ["slack"], "max_request_size_mb": 20}
    where = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    document, notes = imported(
        where, general_settings=general, litellm_settings={"callbacks": ["otel"]}
    )
    assert document["alerts"] == {"webhook_env": "SLACK_WEBHOOK_URL", "form": "slack"}
    assert document["server"] == {"body_limit_bytes": 20 * 1024 * 1024}
    assert document["opentelemetry"] == {"endpoint": "http://collector:4318"}
    assert notes == [("general_settings.alerting", "warning")]


def test_a_callback_that_guards_is_a_check_that_is_lost() -> None:
    _, notes = imported(litellm_settings={"callbacks": ["otel", "presidio", "prometheus"]})
    assert notes == [
        ("litellm_settings.callbacks", "warning"),
        ("litellm_settings.callbacks.presidio", "error"),
        ("litellm_settings.callbacks", "note"),
    ]


def test_limits_of_deployments_are_lost_where_they_were_limits() -> None:
    _, notes = imported(router_settings={"routing_strategy": "usage-based-routing-v2"})
    assert ("router_settings.routing_strategy", "error") in notes
    entries = [{**ENTRY, "rpm": 3}]
    settings = {"enable_pre_call_checks": True}
    assert ("router_settings.enable_pre_call_checks", "error") in imported(
        model_list=entries, router_settings=settings
    )[1]
    assert imported(router_settings=settings)[1] == [
        ("router_settings.enable_pre_call_checks", "note")
    ]


@pytest.mark.parametrize(
    ("strategy", "deployments", "rank"),
    [
        ("simple-shuffle", 2, "note"),
        ("cost-based-routing", 2, "note"),
        ("latency-based-routing", 1, "note"),
        ("latency-based-routing", 2, "error"),
        ("least-busy", 2, "error"),
    ],
)
def test_a_strategy_is_lost_where_a_model_has_a_choice(strategy, deployments, rank) -> None:
    entries = [
        {"model_name": "a", "litellm_params": {"model": f"openai/{number}"}}
        for number in range(deployments)
    ]
    _, notes = imported(model_list=entries, router_settings={"routing_strategy": strategy})
    assert notes == [("router_settings.routing_strategy", rank)]


@pytest.mark.parametrize(
    ("sections", "place", "rank"),
    [
        ({"litellm_settings": {"cache": True}}, "litellm_settings.cache", "error"),
        ({"litellm_settings": {"cache": False}}, "litellm_settings.cache", "note"),
        ({"litellm_settings": {"callbacks": ["mine.handler"]}},
         "litellm_settings.callbacks.mine.handler", "error"),
        ({"litellm_settings": {"nobody_knows": 1}}, "litellm_settings.nobody_knows", "error"),
        ({"general_settings": {"nobody_knows": None}}, "general_settings.nobody_knows", "note"),
        ({"general_settings": {"forward_client_headers_to_llm_api": True}},
         "general_settings.forward_client_headers_to_llm_api", "error"),
        ({"include": ["other.yaml"]}, "include", "error"),
        ({"mcp_servers": {"a": {}}}, "mcp_servers", "error"),
        ({"environment_variables": {"OPENAI_API_BASE": "http://10.0.0.1"}},
         "environment_variables.OPENAI_API_BASE", "error"),
        ({"general_settings": {"health_check_interval": 300}},
         "general_settings.health_check_interval", "warning"),
    ],
)  # fmt: skip
def test_what_changes_answers_money_or_privacy_is_an_error_and_the_rest_is_not(
    sections, place, rank
) -> None:
    """All but the first and the last were warnings, with exit 0."""
    assert (place, rank) in imported(**sections)[1]


def test_an_address_that_an_entry_names_is_no_loss() -> None:
    entries = [{"model_name": "a", "litellm_params": {
        "model": "openai/x", "api_base": "os.environ/MY_API_BASE"}}]  # fmt: skip
    variables = {"MY_API_BASE": "https://llm.example.com/v1"}
    _, notes = imported(model_list=entries, environment_variables=variables)
    assert notes == [("environment_variables", "warning")]


def test_a_budget_of_a_provider_with_several_accounts_names_them() -> None:
    azure = [
        {"model_name": "a", "litellm_params": {
            "model": "azure/x", "api_base": f"https://{name}.example.com",
            "api_key": "os.environ/K",
        }}
        for name in ("eu", "us")
    ]  # fmt: skip
    budgets = {"provider_budget_config": {"azure": {"budget_limit": 3, "time_period": "1d"}}}
    given = {"model_list": azure, "router_settings": budgets}
    made = carry_over(given, gpu={}, provider_of=lambda _: None, environ={"K": "k"})
    (text,) = [
        note.text
        for note in made.notes
        if note.place == "router_settings.provider_budget_config.azure"
    ]
    for name in ("eu", "us"):
        assert f"`provider:azure-{name}.example.com`" in text


def test_a_limit_of_deployments_is_to_be_one_of_the_model() -> None:
    for settings in ({"routing_strategy": "usage-based-routing-v2"}, {"enable_pre_call_checks": 1}):
        given = {"model_list": [{**ENTRY, "rpm": 3}], "router_settings": settings}
        made = carry_over(given, gpu={}, provider_of=lambda _: None, environ={})
        assert any("`model:NAME`" in note.text and note.loss for note in made.notes)

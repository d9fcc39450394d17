"""Sections of a LiteLLM proxy beside its models: each has a counterpart, or a note with a rank."""

import pytest

from gateway.config.litellm_import import carry_over

ENTRY = {"model_name": "a", "litellm_params": {"model": "openai/x"}}


def imported(environ: dict | None = None, **sections):
    given = {"model_list": [ENTRY], **sections}
    made = carry_over(given, gpu={}, provider_of=lambda _: None, environ=environ or {})
    return made.document, [(note.place, note.rank()) for note in made.notes]


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"litellm_settings": {"request_timeout": 7}}, {"head_s": 7.0, "whole_s": 7.0}),
        ({"router_settings": {"timeout": 7, "stream_timeout": 2}}, {"head_s": 2.0, "whole_s": 7.0}),
        (
            {"litellm_settings": {"request_timeout": 7}, "router_settings": {"timeout": 9}},
            {"head_s": 9.0, "whole_s": 9.0},
        ),
        (
            {"litellm_settings": {"request_timeout": 1200}},
            {"head_s": 1200.0, "whole_s": 1200.0, "total_s": 1260.0},
        ),
    ],
)
def test_a_general_timeout_is_no_limit_on_a_stream_that_flows(sections, expected) -> None:
    document, notes = imported(**sections)
    assert (document["server"], notes) == ({"timeouts": expected}, [])


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
        ("litellm_settings.default_internal_user_params.models", "warning"),
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
    assert imported(router_settings={"routing_strategy": "simple-shuffle"})[1] == [
        ("router_settings.routing_strategy", "warning")
    ]

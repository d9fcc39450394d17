"""Notes on settings of a LiteLLM configuration that are not imported, and what to do.

A loss changes which model answers, what is charged, who may call or what is checked. It is an error
unless the user accepts it by name. Other settings that act differently are warnings; settings
without effect are notes.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from gateway.config.deployments import (
    ENVIRON,
    Deployment,
    price_step,
    protocol_of,
    section_of,
)


class ImportLoss(StrEnum):
    """Losses of an import, by the words that `--accept` takes."""

    MODELS = "models"
    FALLBACKS = "fallbacks"
    TIMEOUTS = "timeouts"
    REQUESTS = "requests"
    PRICES = "prices"
    BUDGETS = "budgets"
    LIMITS = "limits"
    ACCESS = "access"
    CHECKS = "checks"
    ACCOUNTS = "accounts"
    CACHE = "cache"
    SETTINGS = "settings"


class ImportNote(NamedTuple):
    """Note on a setting at `place` of the given file, such as `router_settings.num_retries`.

    With `loss`, it is an error; otherwise `warns` says whether the setting acts differently here.
    """

    place: str
    text: str
    loss: ImportLoss | None = None
    warns: bool = True

    def rank(self, accepted: Collection[str] = ()) -> str:
        """Return `error`, `warning` or `note`."""
        if self.loss is not None:
            return "warning" if self.loss in accepted else "error"
        return "warning" if self.warns else "note"


class _Why(NamedTuple):
    text: str
    loss: ImportLoss | None = None
    warns: bool = True


_READ = frozenset({
    "model", "custom_llm_provider", "api_base", "base_url", "api_key", "timeout", "stream_timeout",
    "order", "weight", "extra_body",
})  # fmt: skip
_READ_INFO = frozenset({"base_model", "id", "mode", "max_input_tokens"})
_NONE = "has no counterpart here"
_UNKNOWN = _Why(
    "the importer does not know this setting: look it up, then accept it", ImportLoss.SETTINGS
)
OFF = "is off, which is also the default here"
_SENT = _Why(
    "LiteLLM sends it with each request: put it into `extra_body` of the pool or the provider, or "
    "let applications send it",
    ImportLoss.REQUESTS,
)
_COSTS = _Why("the importer does not read this charge: state it in a price file", ImportLoss.PRICES)
_ACCESS = _Why(
    "every key may use the model: limit a key with `breakeven keys create --model`",
    ImportLoss.ACCESS,
)
_CALLERS = _Why(
    "the gateway checks keys only: check anything else in a proxy in front of it",
    ImportLoss.ACCESS,
)
_CHECKED = _Why(
    "not carried over: configure checks in `content` of a policy and in `content.hooks`",
    ImportLoss.CHECKS,
)
_BUDGET = _Why("state it in `budgets`, with a scope and a period", ImportLoss.BUDGETS)
_LIMIT = _Why("state it in `limits`, with a scope", ImportLoss.LIMITS)
_PARALLEL = _Why(
    "concurrent requests are not limited: `limits` bounds requests and tokens of any 60 s",
    ImportLoss.LIMITS,
)
_LONG_ANSWERS = _Why(
    "the bytes of an answer are not limited: clients set `max_tokens`", ImportLoss.LIMITS
)
_ROUTES = _Why(
    "a key with the scope `inference` may use every inference path: block other paths in a proxy "
    "in front of the gateway",
    ImportLoss.ACCESS,
)
_KEYS_BOUNDS = _Why(
    "a new key has no such bounds: `budgets` and `limits` with the scope `key:*` bound each key, "
    "and `self_service` bounds the keys that members make",
    ImportLoss.ACCESS,
)
_TEAMS = _Why(
    "a team has no settings of its own: write `budgets` and `limits` with the scope `team:NAME`, "
    "and name the models of its keys",
    ImportLoss.ACCESS,
)
_SHARE = _Why(
    "used as a share of the requests if all deployments of the model have it, but never as a "
    "limit: write limits into `limits`"
)
_MODELS = _Why("deployments are chosen by `policies` instead", ImportLoss.MODELS)
_SENDS = _Why("requests to targets are not changed by such a setting", ImportLoss.REQUESTS)
_OTHERS = _Why("the gateway does not serve this API", ImportLoss.REQUESTS)
_HEALTH = _Why("APIs are judged by their answers; engines are probed as `pools` configures")
_ALERTS = _Why("budget alerts are configured in `alerts`; other alerts are rules of Prometheus")
_LOGIN = _Why("access to the dashboard is configured in `dashboard` and `oidc`")
_RETRIES = _Why(
    "a request is tried at up to 3 targets of each stage; failed retries are at most a tenth of "
    "the requests. A failing target is left out, and tried again step by step"
)
_ROUTED = _Why("equal targets are chosen by price within their promise", warns=False)
_HOSTS = _Why("not needed: workers share memory, hosts share the ledger's database", warns=False)
_NO_CACHE = _Why(
    "caching is off by default: `response_cache` turns it on for equal deterministic requests of "
    "one team",
    ImportLoss.CACHE,
)
_CACHE_TERMS = _Why("see `cache`", warns=False)
_METRICS = _Why("see /metrics, `breakeven ledger report` and the dashboard", warns=False)
_NOTHING = _Why("nothing to set", warns=False)
_BY_THE_HOUR = "the cost of an own engine is that of its GPUs: pools.NAME.gpu.usd_per_hour"
# By member of an entry: the variable used here, and the loss if its value differs.
ADAPTED: Mapping[str, tuple[str, ImportLoss]] = {
    "api_version": ("AZURE_API_VERSION", ImportLoss.REQUESTS),
    "aws_access_key_id": ("AWS_ACCESS_KEY_ID", ImportLoss.ACCOUNTS),
    "aws_secret_access_key": ("AWS_SECRET_ACCESS_KEY", ImportLoss.ACCOUNTS),
    "aws_session_token": ("AWS_SESSION_TOKEN", ImportLoss.ACCOUNTS),
    "aws_region_name": ("AWS_REGION_NAME", ImportLoss.ACCOUNTS),
    "vertex_credentials": ("GOOGLE_APPLICATION_CREDENTIALS", ImportLoss.ACCOUNTS),
    "vertex_location": ("VERTEXAI_LOCATION", ImportLoss.ACCOUNTS),
    "vertex_project": ("VERTEXAI_PROJECT", ImportLoss.ACCOUNTS),
}
_OF_MODELS = {
    "timeout": ImportLoss.TIMEOUTS, "stream_timeout": ImportLoss.TIMEOUTS,
    "order": ImportLoss.MODELS, "weight": ImportLoss.MODELS, "extra_body": ImportLoss.REQUESTS,
}  # fmt: skip
_WHY: Mapping[str, _Why] = {
    **dict.fromkeys(("routing_strategy_args",), _ROUTED),
    **dict.fromkeys(
        ("routing_strategy", "optional_pre_call_checks", "model_group_affinity_config",
         "deployment_affinity_ttl_seconds", "enable_weighted_failover", "routing_groups",
         "model_group_settings", "include", "tag_routing", "auto_router_config",
         "custom_provider_map"), _MODELS,
    ),
    **dict.fromkeys(
        ("forward_client_headers_to_llm_api", "forward_openai_org_id", "modify_params",
         "forward_llm_provider_auth_headers", "add_user_information_to_llm_headers",
         "default_litellm_params", "vertex_ai_safety_settings", "reasoning_auto_summary",
         "enable_json_schema_validation", "prompts", "global_prompt_directory",
         "global_bitbucket_config", "global_gitlab_config", "ssl_verify", "ssl_certificate",
         "network_mock", "additional_drop_params", "allowed_openai_params"), _SENDS,
    ),
    **dict.fromkeys(
        ("search_tools", "vector_store_registry", "mcp_servers", "mcp_aliases",
         "mcp_client_side_auth_header_name", "mcp_internal_ip_ranges", "files_settings",
         "finetune_settings", "pass_through_endpoints", "agent_list"), _OTHERS,
    ),
    **dict.fromkeys(
        ("background_health_checks", "health_check_interval", "health_check_details",
         "use_shared_health_check", "enable_health_check_routing", "check_provider_endpoint",
         "health_check_ignore_transient_errors", "health_check_model"), _HEALTH,
    ),
    **dict.fromkeys(
        ("alerting", "alerting_threshold", "alert_to_webhook_url", "alerting_args"), _ALERTS),
    **dict.fromkeys(
        ("UI_USERNAME", "UI_PASSWORD", "ui_access_mode", "custom_sso", "user_role",
         "custom_ui_sso_sign_in_handler", "default_user_params"), _LOGIN,
    ),
    **dict.fromkeys(("key_management_system", "key_management_settings"), _Why(
        "a provider reads its key from the environment, a file or a command: `api_key_env`, "
        "`api_key_file`, `api_key_exec`")),
    **dict.fromkeys(("control_plane_url", "worker_registry", "num_workers"), _Why(
        "hosts share the ledger's database: `ledger.url_env`")),
    "silent_model": _Why("requests are not copied to another model"),
    "enable_azure_ad_token_refresh": _Why(
        "credentials of a workload identity are used without a setting"),
    **dict.fromkeys(
        ("num_retries", "max_retries", "allowed_fails", "cooldown_time", "retry_after",
         "retry_policy", "allowed_fails_policy", "disable_cooldowns", "model_group_retry_policy"),
        _RETRIES,
    ),
    **dict.fromkeys(("redis_host", "redis_port", "redis_password", "redis_url"), _HOSTS),
    **dict.fromkeys(("cache", "cache_responses", "caching_groups"), _NO_CACHE),
    **dict.fromkeys(("cache_params", "cache_kwargs", "client_ttl"), _CACHE_TERMS),
    **dict.fromkeys(
        ("callbacks", "success_callback", "failure_callback", "service_callback", "otel",
         "callback_settings", "langfuse_default_tags", "langsmith_batch_size",
         "custom_prometheus_metadata_labels", "custom_prometheus_tags", "s3_callback_params",
         "aws_sqs_callback_params", "allow_dynamic_callback_disabling"), _METRICS,
    ),
    **dict.fromkeys(
        ("team_id", "access_groups", "access_via_team_ids", "models", "teams"), _ACCESS),
    "allowed_routes": _ROUTES,
    **dict.fromkeys(("default_team_settings", "default_team_params"), _TEAMS),
    **dict.fromkeys(
        ("upperbound_key_generate_params", "default_key_generate_params"), _KEYS_BOUNDS),
    **dict.fromkeys(
        ("allowed_ips", "enforced_params", "custom_auth", "enable_jwt_auth", "litellm_jwtauth",
         "admin_only_routes", "public_routes", "role_permissions", "use_azure_key_vault",
         "enforce_user_param", "reject_clientside_metadata_tags", "litellm_key_header_name",
         "custom_key_generate", "enable_oauth2_auth", "custom_auth_settings"), _CALLERS,
    ),
    **dict.fromkeys(
        ("guardrails", "content_filter", "blocked_user_list", "banned_keywords_list",
         "prompt_injection_params", "moderations", "policies", "policy_attachments",
         "azure_content_safety_params", "pre_call_rules", "post_call_rules"), _CHECKED,
    ),
    **dict.fromkeys(
        ("max_budget", "budget_duration", "provider_budget_config", "max_end_user_budget",
         "max_internal_user_budget", "internal_user_budget_duration", "max_user_budget",
         "default_internal_user_params", "default_max_internal_user_budget",
         "tag_budget_config"), _BUDGET,
    ),
    **dict.fromkeys(
        ("rpm_limit", "tpm_limit", "default_api_key_rpm_limit", "default_api_key_tpm_limit",
         "priority_reservation", "priority_reservation_settings"), _LIMIT,
    ),
    **dict.fromkeys(
        ("max_parallel_requests", "global_max_parallel_requests",
         "default_max_parallel_requests"), _PARALLEL,
    ),
    "max_response_size_mb": _LONG_ANSWERS,
    "blocked": _Why("a blocked model is not imported as blocked: leave its entry out",
                    ImportLoss.ACCESS),
    "access_windows": _Why("models are served at all hours: access windows do not exist",
                           ImportLoss.ACCESS),
    "service_tiers": _Why("each tier is a provider of its own: see `tier` and `billed_with`",
                          ImportLoss.REQUESTS),
    **dict.fromkeys(("tiered_pricing", "off_peak_pricing", "ptu_count"), _COSTS),
    **dict.fromkeys(("tags", "enable_tag_filtering", "tag_filtering_match_any"), _Why(
        "requests are not routed by tags: use them in `when` of a policy", ImportLoss.MODELS)),
    **dict.fromkeys(("extra_headers", "default_headers", "headers"), _Why(
        "custom headers are not sent to targets", ImportLoss.REQUESTS)),
    **dict.fromkeys(("timeout", "stream_timeout", "request_timeout"), _Why(
        "the value is not a number of seconds: write it into models.NAME.timeouts",
        ImportLoss.TIMEOUTS)),
    "rpm": _SHARE, "tpm": _SHARE,
    "environment_variables": _Why("set them where `breakeven serve` is started"),
    "drop_params": _Why(
        "nothing to set: optional members that a target does not know are left out", warns=False),
    "enable_pre_call_checks": _Why(
        "nothing to set: a request that does not fit a target is never sent to it", warns=False),
    **dict.fromkeys(
        ("set_verbose", "json_logs", "debug", "detailed_debug", "suppress_debug_info", "telemetry",
         "disable_spend_logs", "disable_error_logs", "proxy_batch_write_at", "alert_types",
         "supported_db_objects", "return_response_headers", "turn_off_message_logging",
         "store_prompts_in_spend_logs", "database_connection_pool_limit", "debug_level",
         "database_connection_timeout", "log_raw_request_response"),
        _NOTHING),
    "master_key": _Why(
        "keys are made by `breakeven keys create`, with teams and budgets", warns=False),
    "database_url": _Why("give the ledger a database of its own: ledger.url_env", warns=False),
    "store_model_in_db": _Why("the configuration is this file", warns=False),
}  # fmt: skip


def notes_on(
    place: str,
    entry: Mapping[str, Any],
    found: Deployment,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ImportNote]:
    """Yield notes on unread members of an entry; `environ` is what LiteLLM's adapter reads."""
    given, info = section_of(entry.get("litellm_params")), section_of(entry.get("model_info"))
    if found.key_in_file:
        words = f"the key is written in the file: put it into the environment as {found.key}"
        yield ImportNote(f"{place}.litellm_params.api_key", words)
    if (protocol := protocol_of(given)) is not None:
        words = f"`{protocol}/` selects a protocol and is not part of the name: the gateway "
        words += "translates protocols without a setting"
        yield ImportNote(f"{place}.litellm_params.model", words, warns=False)
    for where, section, read, unknown in (
        ("litellm_params", given, _READ, _SENT),  # LiteLLM sends what it does not know
        ("model_info", info, _READ_INFO, _Why(_NONE, warns=False)),
    ):
        for name in section if section is given else _switched_on(info):
            if name == "max_input_tokens" and not found.own:
                words = "a prompt that is too long for its target is sent to the next one"
                yield ImportNote(f"{place}.{where}.{name}", words, warns=False)
            elif name in ADAPTED:
                yield adapted_note(f"{place}.{where}.{name}", name, section[name], environ)
            elif name not in read:
                yield from _on_member(f"{place}.{where}.{name}", name, unknown, own=found.own)
    for name in entry:
        if name not in {"model_name", "litellm_params", "model_info"}:
            yield note_on(f"{place}.{name}", name)


def _switched_on(info: Mapping[str, Any]) -> list[str]:
    """Return the members of `model_info` that have an effect."""
    return [name for name, value in info.items() if not is_off(value)]


def notes_on_pattern(place: str, entry: Mapping[str, Any]) -> Iterator[ImportNote]:
    """Yield notes on members that a model can have and a pattern of models cannot."""
    given, info = section_of(entry.get("litellm_params")), section_of(entry.get("model_info"))
    words = "a pattern cannot have this setting: list the models that need it by their names"
    for where, section in (("litellm_params", given), ("model_info", info)):
        for name in section:
            loss = ImportLoss.PRICES if price_step(name) is not None else _OF_MODELS.get(name)
            if loss is not None:
                yield ImportNote(f"{place}.{where}.{name}", words, loss)


def _on_member(place: str, name: str, unknown: _Why, *, own: bool) -> Iterator[ImportNote]:
    """Yield notes on a member of an entry; imported prices have none."""
    if price_step(name) is None and not ("cost" in name and not own):
        yield note_on(place, name, unknown)
    elif own:
        yield ImportNote(place, _BY_THE_HOUR, warns=False)
    elif price_step(name) is None:
        yield ImportNote(place, _COSTS.text, _COSTS.loss)


def is_off(value: object) -> bool:
    """Return whether a setting with this value has no effect."""
    return value is None or value is False or value in ([], {}, "")


def note_on(place: str, name: str, unknown: _Why = _UNKNOWN) -> ImportNote:
    """Return why a setting of this name is not imported."""
    why = _WHY.get(name, unknown)
    return ImportNote(place, why.text, why.loss, why.warns)


def lost(place: str, text: str, loss: ImportLoss) -> ImportNote:
    """Return the note of a loss that changes answers, money or access."""
    return ImportNote(place, text, loss)


def adapted_note(place: str, name: str, value: object, environ: Mapping[str, str]) -> ImportNote:
    """Return the note on an entry's account, region or version, which is global here."""
    variable, loss = ADAPTED[name]
    words = f"LiteLLM's adapter reads one value for all models, from the variable {variable}"
    stated = value.removeprefix(ENVIRON) if isinstance(value, str) else None
    if value == f"{ENVIRON}{variable}":
        return ImportNote(place, words, warns=False)
    if isinstance(value, str) and value.startswith(ENVIRON):
        stated = environ.get(value.removeprefix(ENVIRON))
    if stated is not None and stated == environ.get(variable):
        return ImportNote(place, f"{words}, which has the same value here", warns=False)
    words += ", which has another value or none here: set it for this command and where "
    return ImportNote(place, f"{words}`breakeven serve` starts", loss)


def known_notes() -> Iterator[ImportNote]:
    """Yield the notes of all settings known by name, with the name as place."""
    for name in _WHY:
        yield note_on(name, name)
    for name in ADAPTED:
        yield adapted_note(name, name, None, {})

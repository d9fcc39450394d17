"""Notes say what of a LiteLLM proxy's configuration has no place in ours, and what to do.

A loss changes which model answers, what is charged, who may call or what is checked: an error,
unless whoever imports accepts it by its name. Other settings that act differently are warnings;
what changes nothing is a note.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from gateway.config.deployments import Deployment, price_step, protocol_of, section_of


class ImportLoss(StrEnum):
    """Names what an import may lose; `--accept` takes these words."""

    MODELS = "models"
    FALLBACKS = "fallbacks"
    TIMEOUTS = "timeouts"
    REQUESTS = "requests"
    PRICES = "prices"
    BUDGETS = "budgets"
    LIMITS = "limits"
    ACCESS = "access"
    CHECKS = "checks"


class ImportNote(NamedTuple):
    """`place` as in the given file: `router_settings.num_retries`.

    `loss`: what is lost, so that it is an error; else `warns` says whether it acts differently.
    """

    place: str
    text: str
    loss: ImportLoss | None = None
    warns: bool = True

    def rank(self, accepted: Collection[str] = ()) -> str:
        """`error`, `warning` or `note`."""
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
_UNKNOWN = _Why(_NONE)
_SENT = _Why(
    "it was sent with each request, or changed it: `extra_body` of a pool or a provider sends "
    "members, and apps may send their own",
    ImportLoss.REQUESTS,
)
_COSTS = _Why("a charge that no column of prices has: state it in a price file", ImportLoss.PRICES)
_ACCESS = _Why(
    "every key may use the model, unless keys name theirs: `breakeven keys create --model`",
    ImportLoss.ACCESS,
)
_CALLERS = _Why(
    "callers are known by their keys alone: check anything else in front of the gateway",
    ImportLoss.ACCESS,
)
_CHECKED = _Why(
    "not carried over: `content` of a policy and `content.hooks` check prompts and answers",
    ImportLoss.CHECKS,
)
_BUDGET = _Why("state it in `budgets`, with a scope and a period", ImportLoss.BUDGETS)
_LIMIT = _Why("state it in `limits`, with a scope", ImportLoss.LIMITS)
_SHARE = _Why(
    "a share of requests, where all deployments of the name state one, and no limit: state limits "
    "in `limits`"
)
_RETRIES = _Why(
    "a request is tried at up to 3 targets of each stage, and further tries that fail are at most "
    "a tenth of the requests; a target that fails is left out by itself and asked again step by "
    "step"
)
_ROUTED = _Why("equal targets are chosen by price within their promise; see `policies`")
_HOSTS = _Why("not needed: workers share memory, hosts share the ledger's database", warns=False)
_NO_CACHE = _Why(
    "`response_cache` gives equal deterministic requests of one team an earlier answer; it is off "
    "unless it is switched on"
)
_METRICS = _Why("see /metrics, `breakeven ledger report` and the dashboard", warns=False)
_NOTHING = _Why("nothing to set", warns=False)
_ADAPTER = "LiteLLM's adapter reads it from the environment: "
_BY_THE_HOUR = "an own engine costs what its GPUs cost an hour: pools.NAME.gpu.usd_per_hour"
_WHY: Mapping[str, _Why] = {
    **dict.fromkeys(("routing_strategy", "routing_strategy_args"), _ROUTED),
    **dict.fromkeys(
        ("num_retries", "max_retries", "allowed_fails", "cooldown_time", "retry_after",
         "retry_policy", "allowed_fails_policy", "disable_cooldowns", "max_fallbacks"), _RETRIES,
    ),
    **dict.fromkeys(("redis_host", "redis_port", "redis_password", "redis_url"), _HOSTS),
    **dict.fromkeys(("cache", "cache_params", "cache_responses", "caching_groups"), _NO_CACHE),
    **dict.fromkeys(("callbacks", "success_callback", "failure_callback"), _METRICS),
    **dict.fromkeys(
        ("team_id", "access_groups", "access_via_team_ids", "allowed_routes",
         "default_team_settings", "default_team_params"), _ACCESS,
    ),
    **dict.fromkeys(
        ("allowed_ips", "enforced_params", "custom_auth", "enable_jwt_auth", "litellm_jwtauth",
         "admin_only_routes", "public_routes", "role_permissions", "use_azure_key_vault",
         "upperbound_key_generate_params", "default_key_generate_params"), _CALLERS,
    ),
    **dict.fromkeys(
        ("guardrails", "content_filter", "blocked_user_list", "banned_keywords_list",
         "prompt_injection_params", "moderations", "policies", "pre_call_rules",
         "post_call_rules"), _CHECKED,
    ),
    **dict.fromkeys(
        ("max_budget", "budget_duration", "provider_budget_config", "max_end_user_budget",
         "max_internal_user_budget", "internal_user_budget_duration", "max_user_budget",
         "default_internal_user_params", "default_max_internal_user_budget"), _BUDGET,
    ),
    **dict.fromkeys(
        ("max_parallel_requests", "global_max_parallel_requests", "rpm_limit",
         "tpm_limit", "default_api_key_rpm_limit", "default_api_key_tpm_limit"), _LIMIT,
    ),
    **dict.fromkeys(("tags", "enable_tag_filtering", "tag_filtering_match_any"), _Why(
        "requests are not routed by tags: a policy's `when` may ask for them", ImportLoss.MODELS)),
    **dict.fromkeys(("extra_headers", "default_headers", "headers"), _Why(
        "no header of one's own is sent to targets", ImportLoss.REQUESTS)),
    **dict.fromkeys(("timeout", "stream_timeout", "request_timeout"), _Why(
        "no number of seconds: state it in models.NAME.timeouts", ImportLoss.TIMEOUTS)),
    "rpm": _SHARE, "tpm": _SHARE,
    "api_version": _Why(f"{_ADAPTER}AZURE_API_VERSION"),
    "aws_access_key_id": _Why(f"{_ADAPTER}AWS_ACCESS_KEY_ID"),
    "aws_secret_access_key": _Why(f"{_ADAPTER}AWS_SECRET_ACCESS_KEY"),
    "aws_region_name": _Why(f"{_ADAPTER}AWS_REGION_NAME"),
    "vertex_credentials": _Why(f"{_ADAPTER}GOOGLE_APPLICATION_CREDENTIALS, a file's path"),
    "vertex_location": _Why(f"{_ADAPTER}VERTEXAI_LOCATION"),
    "vertex_project": _Why(f"{_ADAPTER}VERTEXAI_PROJECT"),
    "environment_variables": _Why("set them where `breakeven serve` is started"),
    "drop_params": _Why(
        "nothing to set: hints that a target does not know are left out", warns=False),
    "enable_pre_call_checks": _Why(
        "nothing to set: what does not fit a target is never sent to it", warns=False),
    **dict.fromkeys(
        ("set_verbose", "json_logs", "debug", "detailed_debug", "suppress_debug_info", "telemetry",
         "disable_spend_logs", "disable_error_logs", "proxy_batch_write_at", "alert_types"),
        _NOTHING),
    "master_key": _Why(
        "keys are made by `breakeven keys create`, with teams and budgets", warns=False),
    "database_url": _Why("give the ledger a database of its own: ledger.url_env", warns=False),
    "store_model_in_db": _Why("the configuration is this file", warns=False),
}  # fmt: skip


def notes_on(place: str, entry: Mapping[str, Any], found: Deployment) -> Iterator[ImportNote]:
    """On what of an entry is not read."""
    given, info = section_of(entry.get("litellm_params")), section_of(entry.get("model_info"))
    if found.key_in_file:
        words = f"the key stands in the file: put it into the environment as {found.key}"
        yield ImportNote(f"{place}.litellm_params.api_key", words)
    if (protocol := protocol_of(given)) is not None:
        words = f"`{protocol}/` chose a protocol, and is no part of the name: what a target speaks "
        words += "is translated"
        yield ImportNote(f"{place}.litellm_params.model", words, warns=False)
    for where, section, read, unknown in (
        ("litellm_params", given, _READ, _SENT),  # LiteLLM sends what it does not know
        ("model_info", info, _READ_INFO, _Why(_NONE, warns=False)),
    ):
        for name in section:
            if name not in read:
                yield from _on_member(f"{place}.{where}.{name}", name, unknown, own=found.own)
    for name in entry:
        if name not in {"model_name", "litellm_params", "model_info"}:
            yield note_on(f"{place}.{name}", name)


def _on_member(place: str, name: str, unknown: _Why, *, own: bool) -> Iterator[ImportNote]:
    """On a member of an entry; a price that is read has no note."""
    if price_step(name) is None and not ("cost" in name and not own):
        yield note_on(place, name, unknown)
    elif own:
        yield ImportNote(place, _BY_THE_HOUR, warns=False)
    elif price_step(name) is None:
        yield ImportNote(place, _COSTS.text, _COSTS.loss)


def note_on(place: str, name: str, unknown: _Why = _UNKNOWN) -> ImportNote:
    """Why a setting of this name is not carried over."""
    why = _WHY.get(name, unknown)
    return ImportNote(place, why.text, why.loss, why.warns)


def lost(place: str, text: str, loss: ImportLoss) -> ImportNote:
    """Something whose loss changes answers, money or access."""
    return ImportNote(place, text, loss)


def known_notes() -> Iterator[ImportNote]:
    """Yield the note of every setting that is known by name, with the name alone as its place."""
    for name in _WHY:
        yield note_on(name, name)

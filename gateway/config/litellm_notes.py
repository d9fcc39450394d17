"""What of a LiteLLM proxy's configuration has no place in ours, and what to do instead."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gateway.config.deployments import COSTS, Deployment, section_of

_READ = frozenset({
    "model", "custom_llm_provider", "api_base", "base_url", "api_key", *COSTS.values(),
})  # fmt: skip
_READ_INFO = frozenset({"base_model", "id", "mode", *COSTS.values()})
_LIMITS = "providers tell their limits in their answers, and these are heeded"
_NO_ORDER = "targets have no order or weight: each request goes where it is cheapest inside its SLO"
_DEADLINES = "deadlines are the gateway's: see server.timeouts"
_RETRIES = "retries have one budget, and circuits open by themselves"
_HOSTS = "not needed: workers share memory, hosts share the ledger's database"
_NO_CACHE = "answers are not cached; engines cache prefixes"
_ADAPTER = "LiteLLM's adapter reads it from the environment: "
_BY_THE_HOUR = "an own engine costs what its GPUs cost an hour: pools.NAME.gpu.usd_per_hour"
_METRICS = "see /metrics, `breakeven ledger report` and the dashboard"
_WHY = {
    "rpm": _LIMITS, "tpm": _LIMITS, "max_parallel_requests": _LIMITS,
    "weight": _NO_ORDER, "order": _NO_ORDER, "routing_strategy": _NO_ORDER,
    "routing_strategy_args": _NO_ORDER,
    "timeout": _DEADLINES, "stream_timeout": _DEADLINES,
    "num_retries": _RETRIES, "max_retries": _RETRIES, "allowed_fails": _RETRIES,
    "cooldown_time": _RETRIES, "retry_after": _RETRIES, "retry_policy": _RETRIES,
    "redis_host": _HOSTS, "redis_port": _HOSTS, "redis_password": _HOSTS, "redis_url": _HOSTS,
    "cache": _NO_CACHE, "cache_params": _NO_CACHE, "cache_responses": _NO_CACHE,
    "callbacks": _METRICS, "success_callback": _METRICS, "failure_callback": _METRICS,
    "api_version": f"{_ADAPTER}AZURE_API_VERSION",
    "aws_access_key_id": f"{_ADAPTER}AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": f"{_ADAPTER}AWS_SECRET_ACCESS_KEY",
    "aws_region_name": f"{_ADAPTER}AWS_REGION_NAME",
    "vertex_credentials": f"{_ADAPTER}GOOGLE_APPLICATION_CREDENTIALS, a file's path",
    "vertex_location": f"{_ADAPTER}VERTEXAI_LOCATION",
    "vertex_project": f"{_ADAPTER}VERTEXAI_PROJECT",
    "provider_budget_config": "a provider has a budget by `budgets`, scope: provider:NAME",
    "environment_variables": "set them where `breakeven serve` is started",
    "drop_params": "nothing to set: hints that a target does not know are left out",
    "enable_pre_call_checks": "nothing to set: what does not fit a target is never sent to it",
    "master_key": "keys are made by `breakeven keys create`, with teams and budgets",
    "database_url": "give the ledger a database of its own: ledger.url_env",
    "store_model_in_db": "the configuration is this file",
    "default_fallbacks": "name the targets of each model; a model moves between all of its own",
}  # fmt: skip


class ImportNote(NamedTuple):
    """`place` as in the given file: `router_settings.num_retries`."""

    place: str
    text: str


def notes_on(place: str, entry: Mapping[str, Any], found: Deployment) -> Iterator[ImportNote]:
    """On what of an entry is not read."""
    given, info = section_of(entry.get("litellm_params")), section_of(entry.get("model_info"))
    if found.key_in_file:
        words = f"the key stands in the file: put it into the environment as {found.key}"
        yield ImportNote(f"{place}.litellm_params.api_key", words)
    for where, section, read in (
        ("litellm_params", given, _READ),
        ("model_info", info, _READ_INFO),
    ):
        for name in section:
            if found.own and name in COSTS.values():
                yield ImportNote(f"{place}.{where}.{name}", _BY_THE_HOUR)
            elif name not in read:
                yield ImportNote(f"{place}.{where}.{name}", reason_not_imported(name))
    for name in entry:
        if name not in {"model_name", "litellm_params", "model_info"}:
            yield ImportNote(f"{place}.{name}", reason_not_imported(name))


def reason_not_imported(name: str) -> str:
    """Why a setting of this name is not carried over."""
    return _WHY.get(name, "has no counterpart here")

"""The configuration file: one YAML document, strict, checked whole before a socket opens.

Unknown keys are errors with their path. Secrets are named (`*_env`, `*_file`), never inline.
`load` parses and validates; `cross_check` returns every contradiction at once, so that a person
mends a file in one round. Each field's `description` is its line in the README's settings table.
"""

import hashlib
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from backends.http import Origin
from backends.openai import BASE_URLS
from gateway.errors import ConfigError
from ledger.windows import zone_named

Ratio = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Usd = Annotated[Decimal, Field(ge=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Timeouts(Section):
    connect_s: Positive = Field(5.0, description="TCP and TLS to an upstream")
    head_s: Positive = Field(120.0, description="request sent to first response byte")
    idle_s: Positive = Field(60.0, description="silence between two chunks of an answer")
    total_s: Positive = Field(900.0, description="one request, all attempts together")
    client_stall_s: Positive = Field(60.0, description="a client that stops reading its answer")
    receive_s: Positive = Field(30.0, description="a client that stops sending its request")
    drain_s: Positive = Field(30.0, description="open streams may finish after SIGTERM")


class Server(Section):
    host: str = Field("127.0.0.1", description="address the gateway listens on")
    port: int = Field(8080, ge=0, le=65535, description="port the gateway listens on")
    workers: int = Field(1, ge=1, le=64, description="gateway worker processes on this host")
    body_limit_bytes: int = Field(
        10 * 1024 * 1024, ge=1024, description="largest accepted request body"
    )
    max_in_flight: int = Field(
        4096, ge=1, description="requests one worker works on at once; more get 503"
    )
    max_n: int = Field(8, ge=1, le=128, description="largest accepted `n`")
    timeouts: Timeouts = Timeouts()


class Ledger(Section):
    url: str | None = Field(
        None, description="SQLAlchemy URL; default: SQLite `ledger.db` in the state directory"
    )
    url_env: str | None = Field(None, description="environment variable that holds the URL")
    journal_segment_bytes: int = Field(
        64 * 1024 * 1024, ge=65536, description="a journal file is rotated at this size"
    )
    journal_limit_bytes: int = Field(
        4 * 1024**3, ge=1024 * 1024, description="unapplied journal at which requests get 503"
    )


class Telemetry(Section):
    scrape_s: Positive = Field(0.5, description="seconds between two reads of an engine's metrics")
    stale_s: Positive = Field(
        10.0, description="an engine whose metrics are older than this is `unknown`"
    )


class Dashboard(Section):
    enabled: bool = Field(False, description="start the dashboard with `breakeven serve`")
    host: str = Field("127.0.0.1", description="address the dashboard listens on")
    port: int = Field(8501, ge=0, le=65535, description="port the dashboard listens on")


class Gpu(Section):
    """What the hardware under one replica costs, by contract; dates are inclusive UTC days."""

    type: str = Field(description="GPU name from `breakeven engine list`, or CPU")
    count: int = Field(1, ge=1, description="GPUs under one replica")
    billing: Literal["reserved", "on_demand", "owned"] = Field(
        "reserved", description="which hours are billed"
    )
    usd_per_hour: Usd | None = Field(
        None, description="rate of one GPU; without it the dashboard asks for it, never $0"
    )
    source: str | None = Field(None, description="where the rate comes from")
    since: date | None = Field(None, description="first day of the contract")
    until: date | None = Field(None, description="last day of the contract")


class Ops(Section):
    hours_per_week: Annotated[Decimal, Field(ge=0)] = Field(
        Decimal(0), description="people's time spent on this pool"
    )
    usd_per_hour: Usd = Field(Decimal(0), description="what an hour of it costs")


class Engine(Section):
    """A pool's engines: started by us (`replicas`) or attached (`endpoints`)."""

    kind: Literal["vllm", "simulated"] = Field("vllm", description="what serves the model")
    model: str | None = Field(None, description="model directory, or simulated profile name")
    served_name: str | None = Field(None, description="model name the engine answers to")
    replicas: int = Field(0, ge=0, le=64, description="engines that `serve` starts itself")
    endpoints: tuple[str, ...] = Field(
        (), description="base URLs of engines that already run, e.g. http://10.0.0.5:8000/v1"
    )
    port: int = Field(8100, ge=0, le=65535, description="first replica's port on loopback")
    environment: str | None = Field(
        None, description="the engine's virtual environment; default: in the state directory"
    )
    flags: tuple[str, ...] = Field((), description="further flags for the engine, as they are")
    api_key_env: str | None = Field(None, description="environment variable with its key")
    context_tokens: int | None = Field(
        None, ge=1, description="context limit; default: what the engine reports"
    )
    max_num_seqs: int | None = Field(
        None, ge=1, description="sequences in one batch, told to engines that `serve` starts; 256"
    )
    prefill_budget_tokens: int | None = Field(
        None, ge=1, description="tokens in one step, told to engines that `serve` starts; 2048"
    )
    features: tuple[str, ...] = Field(
        ("tools", "json_schema", "logprobs", "n"), description="what requests may use"
    )
    kinds: tuple[Literal["chat", "completion", "embedding"], ...] = Field(
        ("chat", "completion"), description="which endpoints the model serves"
    )
    accepts_salt: bool = Field(True, description="isolates prefix caches by `cache_salt`")


class Pool(Section):
    engine: Engine
    gpu: Gpu
    ops: Ops = Ops()
    bid_price_usd_per_s: Usd = Field(
        Decimal(0), description="fixed price of one engine-second in the decision"
    )


class Provider(Section):
    kind: Literal["openai", "litellm"] = Field(
        "openai", description="wire format: OpenAI-compatible, or LiteLLM's adapter"
    )
    base_url: str | None = Field(None, description="default: the provider's public address")
    api_key_env: str | None = Field(None, description="environment variable with the key")
    api_key_file: str | None = Field(None, description="file with the key")
    prices_as: str | None = Field(
        None, description="price this provider's models as `provider/model` of the price book"
    )
    litellm_prefix: str | None = Field(
        None, description="LiteLLM's name of the provider, when it differs from ours"
    )
    simulated: bool = Field(False, description="a stand-in: labelled wherever it shows")
    start: bool = Field(False, description="`serve` starts this simulated provider itself")
    features: tuple[str, ...] = Field(
        ("tools", "json_schema", "images", "logprobs", "n", "reasoning"),
        description="what requests may use",
    )
    kinds: tuple[Literal["chat", "completion", "embedding"], ...] = Field(
        ("chat", "completion", "embedding"), description="which endpoints it serves"
    )


class Model(Section):
    targets: tuple[str, ...] = Field(
        (), description="`pool:NAME` or `PROVIDER/MODEL`, in no order: the router decides"
    )
    same_as: str | None = Field(None, description="alias of another logical model")
    residency: Literal["any", "internal_only"] = Field(
        "any", description="`internal_only` never leaves the network"
    )
    compare_with: tuple[str, ...] = Field(
        (), description="prices to compare with: first the substitute, then same weights elsewhere"
    )
    sticky: Literal["none", "session"] = Field(
        "none", description="keep a session on its target while that is feasible"
    )


class Match(Section):
    models: tuple[str, ...] = Field((), description="logical models; empty matches all")
    teams: tuple[str, ...] = Field((), description="team ids; empty matches all")


class PolicySlo(Section):
    ttft_ms: Positive | None = Field(None, description="time to first token")
    tpot_ms: Positive | None = Field(None, description="time per output token after the first")
    attainment: Ratio = Field(0.95, description="share of requests that must meet it")
    strict: bool = Field(False, description="filter APIs too on a likely miss")


class PolicyRule(Section):
    name: str = Field(min_length=1, description="shown in headers, metrics and the ledger")
    match: Match = Match()
    slo: PolicySlo = PolicySlo()
    kv_headroom_floor: Ratio | Literal["off"] = Field(
        0.10, description="share of KV cache that stays free after admission; `off`: no KV filter"
    )
    penalty_usd: Usd | None = Field(
        None,
        description="price of one SLO miss; default: 5 x the request's price at its comparator",
    )
    max_usd_per_request: Usd | None = Field(None, description="cap on one request's cost bound")
    otherwise: Literal["queue", "best_effort", "reject"] = Field(
        "reject", description="when nothing is feasible"
    )
    queue_ms: Positive = Field(2000.0, description="longest wait when `otherwise: queue`")
    residency: Literal["any", "internal_only"] = Field(
        "any", description="may only tighten the model's"
    )


class Budget(Section):
    scope: str = Field(
        pattern=r"^(global|external|(org|team|key|user|model|provider):.+)$",
        description="`team:search`, `org:acme`, `provider:openai`, `external` (all real APIs), ...",
    )
    usd: Usd = Field(description="limit of one period")
    period: Literal["day", "month"] = Field("month", description="calendar-aligned window")
    hard: bool = Field(True, description="refuse before the limit; soft: alert only")
    timezone: str = Field("UTC", description="IANA time zone of the window")


class Settings(Section):
    state_dir: str = Field(
        ".breakeven", description="ledger, journals, logs, engine environment, generated models"
    )
    server: Server = Server()
    ledger: Ledger = Ledger()
    telemetry: Telemetry = Telemetry()
    dashboard: Dashboard = Dashboard()
    models: dict[str, Model | Literal["passthrough"]] = Field(
        default_factory=dict, description="what apps ask for"
    )
    pools: dict[str, Pool] = Field(default_factory=dict, description="own engines")
    providers: dict[str, Provider] = Field(default_factory=dict, description="external APIs")
    policies: tuple[PolicyRule, ...] = Field((), description="first match wins")
    budgets: tuple[Budget, ...] = Field((), description="limits on spend")
    prices: tuple[str, ...] = Field(
        (), description="further price files (YAML), applied over the bundled book"
    )

    @field_validator("policies")
    @classmethod
    def _unique_names(cls, rules: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
        names = [rule.name for rule in rules]
        if len(set(names)) != len(names):
            raise ValueError("policy names must be unique")
        return rules

    @property
    def state(self) -> Path:
        return Path(self.state_dir)


def load(path: Path) -> Settings:
    """Read, validate and cross-check the file; raise `ConfigError` listing every fault."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: not UTF-8 text"]) from error
    return parse(text, name=str(path))


def parse(text: str, *, name: str) -> Settings:
    try:
        document: Any = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError([f"{name}: not YAML: {error}"]) from error
    if not isinstance(document, dict):
        raise ConfigError([f"{name}: the document must be a mapping"])
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        raise ConfigError([_line(name, fault) for fault in error.errors()]) from error
    faults = cross_check(settings)
    if faults:
        raise ConfigError([f"{name}: {fault}" for fault in faults])
    return settings


def version(settings: Settings) -> str:
    """A short content hash: the policy version that attempts carry."""
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()[:12]


def resolve_model(settings: Settings, name: str) -> tuple[str, Model] | None:
    """Follow aliases and pass-through patterns; `None` when no model has that name.

    Returns the logical model that serves (the alias's target) and its definition.
    """
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        model = settings.models.get(name)
        if isinstance(model, Model):
            if model.same_as is None:
                return name, model
            name = model.same_as
            continue
        provider, slash, rest = name.partition("/")
        if (
            slash
            and rest not in ("", "*")
            and settings.models.get(f"{provider}/*") == "passthrough"
        ):
            return name, Model(targets=(name,), compare_with=(name,))
        return None
    return None


def cross_check(settings: Settings) -> list[str]:
    """Contradictions between sections, all of them, as sentences that name the key and the fix."""
    faults: list[str] = []
    for name, model in settings.models.items():
        if isinstance(model, Model):
            faults += _check_model(settings, name, model)
        elif not name.endswith("/*") or name[:-2] not in settings.providers:
            faults.append(
                f"models.{name}: passthrough needs a key like `openai/*` of a configured provider"
            )
    for name, pool in settings.pools.items():
        if not pool.engine.replicas and not pool.engine.endpoints:
            faults.append(f"pools.{name}.engine: set `replicas` or `endpoints`")
        if pool.engine.replicas and pool.engine.model is None:
            faults.append(f"pools.{name}.engine.model: needed to start replicas")
    known = {name for name, model in settings.models.items() if isinstance(model, Model)}
    for rule in settings.policies:
        faults += [
            f"policies.{rule.name}.match.models: no model named `{name}`"
            for name in rule.match.models
            if name not in known and "/" not in name
        ]
    faults += _check_values(settings)
    if settings.ledger.url and settings.ledger.url_env:
        faults.append("ledger: set either `url` or `url_env`")
    return faults


def _check_model(settings: Settings, name: str, model: Model) -> list[str]:
    here = f"models.{name}"
    if model.same_as is not None:
        if resolve_model(settings, name) is None:
            return [f"{here}.same_as: `{model.same_as}` leads to no model"]
        return []
    faults = [] if model.targets else [f"{here}.targets: at least one is needed"]
    for target in model.targets:
        if target.startswith("pool:"):
            if target[5:] not in settings.pools:
                faults.append(f"{here}.targets: no pool named `{target[5:]}`")
        elif target.partition("/")[0] not in settings.providers:
            faults.append(f"{here}.targets: no provider named `{target.partition('/')[0]}`")
    if any(target.startswith("pool:") for target in model.targets) and not model.compare_with:
        faults.append(
            f"{here}.compare_with: name at least one API model, or break-even cannot be computed"
        )
    if model.residency == "internal_only" and any(
        not target.startswith("pool:") for target in model.targets
    ):
        faults.append(f"{here}: internal_only, but a target is an external API")
    return faults


def _check_values(settings: Settings) -> list[str]:
    """What no process could start with: addresses that are none, unknown time zones."""
    tried: list[tuple[str, Callable[[str], object], str]] = [
        (f"budgets.{budget.scope}.timezone", zone_named, budget.timezone)
        for budget in settings.budgets
    ]
    for name, pool in settings.pools.items():
        tried += [(f"pools.{name}.engine", Origin.parse, url) for url in pool.engine.endpoints]
    faults: list[str] = []
    for name, provider in settings.providers.items():
        if provider.base_url is not None:
            tried.append((f"providers.{name}.base_url", Origin.parse, provider.base_url))
        elif provider.kind == "openai" and not provider.start and name not in BASE_URLS:
            faults.append(f"providers.{name}.base_url: needed, `{name}` is not a known name")
    for place, check, value in tried:
        try:
            check(value)
        except ValueError as error:
            faults.append(f"{place}: {error}")
    return faults


def _line(name: str, fault: Any) -> str:
    path = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{name}: {path}: unknown key"
    return f"{name}: {path}: {fault['msg']}"

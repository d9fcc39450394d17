"""Sections of the configuration file as pydantic models: strict, frozen, without secrets.

Single fields are checked here, combinations in `crosschecks`. Each field's `description` is its
line in docs/reference/settings.md.
"""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from backends.engines import VLLM
from gateway.config.adapters import with_adapters
from gateway.config.choices import EngineKindName, MetricsPageName
from gateway.config.reporting_days import with_zones
from gateway.config.schema_content import ContentSection
from gateway.config.schema_dashboard import DashboardSection
from gateway.config.schema_limits import BudgetSection, RateLimitSection
from gateway.config.schema_models import ModelEntry, ModelSection
from gateway.config.schema_oidc import OidcSection
from gateway.config.schema_otel import OpenTelemetrySection
from gateway.config.schema_peers import PeersSection
from gateway.config.schema_policies import (
    MatchSection,
    Policies,
    PolicyRuleSection,
    PolicySloSection,
)
from gateway.config.schema_providers import ProviderSection
from gateway.config.schema_reports import (
    AlertsSection,
    EventsSection,
    LogsSection,
    MailSection,
    ReportSection,
    TelemetrySection,
)
from gateway.config.schema_response_cache import ResponseCacheSection
from gateway.config.schema_roles import RolesSection
from gateway.config.schema_scale import ScaleSection
from gateway.config.schema_self_service import SelfServiceSection
from gateway.config.schema_server import ServerSection
from gateway.config.schema_store import StoreSection
from gateway.config.schema_upkeep import SamplingSection, UpkeepSection
from gateway.config.sections import (
    NAME,
    ConfigSection,
    KvEvents,
    Lowered,
    Named,
    Positive,
    Usd,
    Variable,
    Zone,
)
from gateway.config.served_kinds import (
    ENGINE_DEFAULT,
    ServedKind,
    can_engines_serve,
    list_other_kinds,
)

__all__ = [
    "NAME",
    "ConfigSection",
    "MatchSection",
    "ModelSection",
    "PolicyRuleSection",
    "PolicySloSection",
    "ProviderSection",
    "Settings",
]


class LedgerSection(ConfigSection):
    url: str | None = Field(
        None, description="SQLAlchemy URL; default: SQLite `ledger.db` in the state directory"
    )
    url_env: Variable | None = Field(None, description="environment variable that holds the URL")
    journal_segment_bytes: int = Field(
        64 * 1024 * 1024, ge=65536, description="size at which a journal file is rotated"
    )
    journal_limit_bytes: int = Field(
        4 * 1024**3,
        ge=1024 * 1024,
        description="size of the unapplied journal at which requests get 503",
    )
    journal_writes: Literal["kernel", "thread", "calls"] = Field(
        "kernel",
        description="who brings records to the disk: the `kernel` (io_uring), a `thread` (also "
        "where io_uring is refused), or `calls` of a worker's own loop, which may wait for the "
        "file system (also on file systems other than ext4 and tmpfs)",
    )
    retain_days: int | None = Field(
        None,
        ge=35,
        description="days after which single attempts are deleted, and with them answers from the "
        "cache, plans of fleets that size themselves and turns of reports; their sums and proof "
        "stay",
    )
    retain_entries_days: int | None = Field(
        None,
        ge=35,
        description="days after which postings and refusals become balances by account and day, "
        "and counts by hour, once their attempts are deleted",
    )


class QueueSection(ConfigSection):
    places: int = Field(
        512, ge=1, le=100_000, description="requests that wait in one worker for the same pools"
    )
    weights: dict[str, Annotated[float, Field(gt=0.0, le=1_000_000.0)]] = Field(
        default_factory=dict,
        description="weight of each team's share of engine tokens while several wait; others "
        "have 1",
    )


class BatchesSection(ConfigSection):
    enabled: bool = Field(True, description="whether files and batches are served")
    file_limit_bytes: int = Field(
        200 * 1024 * 1024, ge=1024, description="largest file; the ledger's database holds it"
    )
    team_limit_bytes: int = Field(
        10 * 1024**3, ge=1024, description="size of all files that one team may keep"
    )
    team_batches: int = Field(50, ge=1, description="unfinished batches that one team may have")
    lines_limit: int = Field(50_000, ge=1, description="requests that one batch may have")
    keep_days: int = Field(30, ge=1, le=3650, description="days after which files are deleted")
    in_flight: int = Field(
        64, ge=1, le=4096, description="lines of batches that one host sends at once, at most"
    )
    spill_s: Positive = Field(
        7200.0,
        description="time before a batch's end from which lines that no idle engine ran may go "
        "to APIs",
    )
    hand_on_s: Positive = Field(
        43_200.0,
        description="time before a batch's end from which lines that own engines will not have "
        "run go to a provider's batch",
    )


class GpuSection(ConfigSection):
    """Cost of the hardware of one replica, by contract; dates are inclusive UTC days."""

    type: str = Field(description="GPU name from `breakeven engine list`, or CPU")
    count: int = Field(1, ge=1, description="GPUs under one replica")
    billing: Literal["reserved", "on_demand", "owned"] = Field(
        "reserved", description="hours that are billed"
    )
    usd_per_hour: Usd | None = Field(
        None, description="rate of one GPU; without it the dashboard asks for it, never $0"
    )
    source: str | None = Field(None, description="source of the rate")
    since: date | None = Field(None, description="first day of the contract")
    until: date | None = Field(None, description="last day of the contract")
    machine: str | None = Field(
        None,
        min_length=1,
        description="name of a machine; pools that name the same one share its GPUs and its rate",
    )
    share: Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=6)] = Field(
        Decimal(1),
        description="weight of this pool's part of a shared machine: rate and GPU memory",
    )


class OpsSection(ConfigSection):
    hours_per_week: Annotated[Decimal, Field(ge=0)] = Field(
        Decimal(0), description="people's time spent on this pool"
    )
    usd_per_hour: Usd = Field(Decimal(0), description="cost of one hour of that time")


class EngineSection(ConfigSection):
    """Engines of a pool: started by `serve` (`replicas`) or attached (`endpoints`)."""

    kind: EngineKindName = VLLM
    model: str | None = Field(
        None,
        description="model directory; of a simulated engine a profile, or a file of `engine fit`",
    )
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
    profile: str | None = Field(
        None, description="flags that `engine tune` found, its file; `flags` and limits stated win"
    )
    adapters: dict[Named, str] = Field(
        default_factory=dict,
        description="LoRA adapters by name, each a folder; apps ask for one as for a model",
    )
    api_key_env: Variable | None = Field(None, description="environment variable with its key")
    metrics: MetricsPageName = "auto"
    measure: Literal["off", "idle", "always"] = Field(
        "idle",
        description="requests of the gateway that time `endpoints`: few and only while nothing "
        "runs there; `always`: more, at once; `off`: none, speed is assumed by the GPU's type",
    )
    context_tokens: int | None = Field(
        None, ge=1, description="context limit; default: what the engine reports"
    )
    kv_capacity_tokens: int | None = Field(
        None, ge=1, description="KV cache of one of `endpoints`, where its metrics do not tell it"
    )
    kv_events: KvEvents = False
    max_num_seqs: int | None = Field(
        None, ge=1, description="sequences in one batch, told to engines that `serve` starts; 256"
    )
    prefill_budget_tokens: int | None = Field(
        None, ge=1, description="tokens in one step, told to engines that `serve` starts; 2048"
    )
    features: tuple[Lowered, ...] = Field(
        ("tools", "json_schema", "logprobs", "n"), description="features that requests may use"
    )
    kinds: tuple[ServedKind, ...] = Field(
        ENGINE_DEFAULT,
        description="kinds of requests that are served: also "
        f"{list_other_kinds(ENGINE_DEFAULT, can_engines_serve)}",
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="members of bodies that are sent with each request, unless its client states "
        "them: `{chat_template_kwargs: {enable_thinking: false}}`",
    )
    accepts_salt: bool = Field(
        True, description="whether the engine isolates prefix caches by `cache_salt`"
    )


class PoolSection(ConfigSection):
    engine: EngineSection
    gpu: GpuSection
    ops: OpsSection = OpsSection()
    upkeep: UpkeepSection = UpkeepSection()
    sampling: SamplingSection | None = None
    roles: RolesSection | None = None
    scale: ScaleSection | None = None
    bid_price_usd_per_s: Usd = Field(
        Decimal(0), description="fixed price of one engine-second in the decision"
    )


class Settings(ConfigSection):
    state_dir: str = Field(
        ".breakeven", description="ledger, journals, logs, engine environment, generated models"
    )
    timezone: Zone = Field(
        "UTC",
        description="IANA time zone of the organisation: its days and months on pages, in exports "
        "and reports, and of budgets that name none",
    )
    server: ServerSection = ServerSection()
    ledger: LedgerSection = LedgerSection()
    telemetry: TelemetrySection = TelemetrySection()
    queue: QueueSection = QueueSection()
    store: StoreSection = StoreSection()
    response_cache: ResponseCacheSection = ResponseCacheSection()
    self_service: SelfServiceSection = SelfServiceSection()
    batches: BatchesSection = BatchesSection()
    dashboard: DashboardSection = DashboardSection()
    oidc: OidcSection = OidcSection()
    peers: PeersSection = PeersSection()
    models: dict[Named, ModelEntry] = Field(
        default_factory=dict, description="logical models, by the name that apps ask for"
    )
    pools: dict[Named, PoolSection] = Field(default_factory=dict, description="own engines")
    providers: dict[Named, ProviderSection] = Field(
        default_factory=dict, description="external APIs"
    )
    policies: Policies = Field((), description="rules in order: the first one that matches acts")
    budgets: tuple[BudgetSection, ...] = Field((), description="limits on spend")
    limits: tuple[RateLimitSection, ...] = Field(
        (), description="limits on requests and tokens, a host"
    )
    content: ContentSection = ContentSection()
    alerts: AlertsSection = AlertsSection()
    reports: tuple[ReportSection, ...] = Field(
        (), description="reports with the verdict, sent by themselves once a period is over"
    )
    mail: MailSection = MailSection()
    events: EventsSection = EventsSection()
    logs: LogsSection = LogsSection()
    opentelemetry: OpenTelemetrySection = OpenTelemetrySection()
    prices: tuple[str, ...] = Field(
        (), description="further price files (YAML), applied over the bundled book"
    )

    @model_validator(mode="before")
    @classmethod
    def _adapters_are_models(cls, document: Any) -> Any:
        return with_zones(with_adapters(document))

    @property
    def state(self) -> Path:
        return Path(self.state_dir)

"""Composition root of a worker: builds the ASGI application from settings and runtime.

All parts are created here and passed as arguments; there are no module globals. Tests call the same
function with other clocks, backends and ledgers.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from backends.base import Deadlines
from backends.http import HttpClient, PoolLimits
from backends.secret import Secret
from gateway.batches.serving import BatchDependencies, serve_batches
from gateway.clock import Clock, next_tick
from gateway.config.settings import Settings
from gateway.control.access import guard_routes
from gateway.control.admin.enginehost import EngineHost
from gateway.control.admin.executor import AdminExecutor
from gateway.control.admin.routes import admin_routes, described_routes
from gateway.control.operations import ROUTES
from gateway.control.people import people_of
from gateway.fleet.candidates import CandidateBuilder, PromptCaches
from gateway.fleet.demand_counter import DemandCounter
from gateway.fleet.fleet import Fleet
from gateway.fleet.output_overruns import TargetOverruns
from gateway.fleet.prefix_index import PREFIXES_FILE, PrefixIndex
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import TargetStats
from gateway.fleet.target_views import LiveTargetViews
from gateway.ids import RequestIds
from gateway.policies.sets import rules_of
from gateway.request.active_policies import ActivePolicies
from gateway.request.admission import BudgetAdmission
from gateway.request.content_inspector import open_inspector
from gateway.request.degraded_decider import DegradedDecider
from gateway.request.dispatch import AsyncClosable, Dispatcher
from gateway.request.dispatch_recheck import recheck_of
from gateway.request.inference_api import InferenceApi
from gateway.request.limits.admission_queue import AdmissionQueue
from gateway.request.limits.rate_limiter import open_limits
from gateway.request.load_tracker import LoadTracker
from gateway.request.metering import UsageMeter
from gateway.request.model_catalog import CatalogSources, ModelCatalog
from gateway.request.plan import LearnedEstimates, RoutePlanner
from gateway.request.response_writer import ResponseWriter
from gateway.request.routes import RouteCache
from gateway.request.session_affinity import SessionAffinity
from gateway.request.silent_engine import SilentEngineDetector
from gateway.request.sockets.responses_sockets import ResponsesSockets
from gateway.request.trace_observer import TraceObserver
from gateway.runtime import Runtime
from gateway.sound.sound_decoder import SoundDecoder
from gateway.stored.serving import StoredParts, serve_stored
from gateway.telemetry.drift.drawing import open_drawing
from gateway.telemetry.metrics.requests import RequestMetrics
from gateway.worker.app import Gateway, Operations, Ready, create_app
from gateway.worker.cached_answers import CacheParts, open_cache
from gateway.worker.idempotent_requests import open_submissions
from gateway.worker.journal_gate import JOURNAL, JournalGate
from gateway.worker.learned_estimates import HostEstimates, open_estimates
from gateway.worker.ledger_follow import LedgerReaders, LiveParts, followers_of
from gateway.worker.policy_follower import ReadPolicies
from gateway.worker.wire_clients import HttpClients, make_backends
from ledger.budgets.client import BudgetClient
from ledger.database import make_engine
from ledger.journals.journal import JournalWriter
from ledger.prices.modellimits import model_limits

BEAT_S, IDLE_BEAT_S = 0.1, 0.5  # the second applies while no request is open or has ended
LAST_WORDS_S, API_IDLE_S, DESK_SOCKET = 1.0, 60.0, "desk.sock"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetricsExposition:
    """Registry of this worker's metrics, and the renderer of all workers' metrics."""

    registry: CollectorRegistry
    render: Callable[[], bytes]


def build(
    settings: Settings,
    runtime: Runtime,
    worker: int,
    ledger: LedgerReaders,
    exposition: MetricsExposition,
    environ: Mapping[str, str],
) -> Gateway:
    """Build the application of one worker; its lifespan closes what it opened."""
    limits, queue, clock = settings.server.timeouts, settings.queue, Clock()
    board, prefixes = _shared_tables(runtime)
    journal, desk, recording = _open_records(settings, runtime, worker)
    fleet, clients = _fleet(settings, runtime, environ)
    admission, experience = BudgetAdmission(desk), TargetStats(board, worker, clock)
    estimates = open_estimates(runtime, worker, ledger.lengths, clock, experience)
    learned, metrics = estimates.learned, _metrics(settings, runtime, exposition, estimates)
    metering = UsageMeter(journal, admission, metrics, experience, learned, clock)
    candidates = _candidates(settings, board, ledger, experience, prefixes, learned)
    decider, in_force = DegradedDecider(board, metrics), _in_force(settings, ledger.policies)
    plans_for = _plans(fleet, admission, candidates, learned, decider, in_force)
    cached = CacheParts(journal, fleet, admission, candidates, learned.ratio, in_force, metrics)
    dispatcher = Dispatcher(
        plans=in_force.hold(plans_for),
        admission=admission,
        metering=metering,
        delivery=ResponseWriter(metering, clock, first_s=limits.head_s),
        flights=LoadTracker(board, worker, prefixes),
        experience=experience,
        sessions=SessionAffinity(),
        submissions=open_submissions(settings, runtime, clock, environ),
        silences=SilentEngineDetector(board, worker, clock, recheck_of(board, peers=runtime.peers)),
        deadlines=Deadlines(limits.connect_s, limits.head_s, limits.idle_s),
        whole=Deadlines(limits.connect_s, limits.whole_s, limits.idle_s),
        clock=clock,
        waiting=AdmissionQueue(queue.places, queue.weights, metrics.policies, clock.now_s),
        limits=open_limits(settings.limits, runtime, clock),
        demanded=DemandCounter(board, worker),
        drawing=open_drawing(settings, runtime.run_dir),
        observer=_observer(settings, runtime, worker, clock, environ, exposition),
        sounds=SoundDecoder(),
        cache=open_cache(settings, worker, environ, cached, clock, exposition.registry),
        inspector=open_inspector(settings.content, metrics),
    )
    hot = _inference_api(dispatcher, ledger, metrics, settings, fleet)
    stored = serve_stored(settings, runtime, worker, clock, hot)
    host = BatchDependencies(settings, runtime, board, worker, ledger.keys, clock)
    batches = serve_batches(host, dispatcher, in_force, plans_for)

    @asynccontextmanager
    async def lifespan(app: Gateway) -> AsyncIterator[None]:
        board.enter_worker(worker, os.getpid(), clock.now_s())
        recording.attach(settings.ledger.journal_writes, metrics.journal_writes)
        await desk.connect()
        moving = LiveParts(candidates, fleet, in_force, estimates.reset)
        new = (*followers_of(settings, ledger, runtime, moving, clock), estimates.keep())
        parts = (*batches.chores(), *stored.chores(), app.sockets.watch())
        parts = (*parts, hot.sweep(), dispatcher.silences.watch())
        async with _beside(_beat(board, worker, clock, metrics, recording), *new, *parts):
            yield
        await _wait_for_requests([hot, *batches.served], metrics, stored)
        await _aclose(batches, stored, dispatcher, desk)
        await clients.aclose(fleet)
        board.clear(worker)
        _close(dispatcher, journal, prefixes, estimates, board)

    shown = _shown(exposition, metrics, partial(readiness, hot, desk, recording))
    app = create_app(settings, shown, clock, lifespan, ledger.reader)
    app.hot, app.secrets, app.catalog = hot, _keys(fleet), _menu(settings, fleet, candidates, clock)
    app.add_batches((*batches.routers, *stored.routers), batches.entrance)
    return _add_admin_routes(app, settings, runtime, ledger, board, clock)


def _fleet(
    settings: Settings, runtime: Runtime, environ: Mapping[str, str]
) -> tuple[Fleet, HttpClients]:
    """Return the targets and their HTTP clients."""
    clients = HttpClients(HttpClient(), HttpClient(PoolLimits(idle_s=API_IDLE_S)))
    return Fleet(settings, runtime, make_backends(clients, settings, environ)), clients


def _shared_tables(runtime: Runtime) -> tuple[SharedLoadTable, PrefixIndex]:
    """Return the tables shared by the host's processes: the load and the prefix index."""
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    return board, PrefixIndex(runtime.run_dir / PREFIXES_FILE, board)


def _shown(exposition: MetricsExposition, metrics: RequestMetrics, ready: Ready) -> Operations:
    return Operations(partial(_render_metrics, exposition, metrics), ready)


def _menu(
    settings: Settings, fleet: Fleet, candidates: CandidateBuilder, clock: Clock
) -> ModelCatalog:
    sources = CatalogSources(
        lambda target: candidates.quote_of(target, clock.wall_us()),
        lambda target: candidates.context_of(target, clock.now_s()),
    )
    return ModelCatalog(settings, fleet, sources)


def _keys(fleet: Fleet) -> tuple[Secret, ...]:
    return tuple(secret for back in fleet.backends.values() for secret in back.secrets)


def _add_admin_routes(
    app: Gateway,
    settings: Settings,
    runtime: Runtime,
    ledger: LedgerReaders,
    board: SharedLoadTable,
    clock: Clock,
) -> Gateway:
    """Add the guarded admin routes and the WebSockets; return the application."""
    app.sockets = ResponsesSockets(lambda: app.hot, ledger.keys, settings.server, clock)
    opened = partial(make_engine, runtime.ledger_url)
    desk = AdminExecutor(settings, opened, EngineHost(settings, runtime, board), clock)
    app.router.routes.extend(admin_routes(desk))
    app.described = described_routes
    guard_routes(app, ledger.keys, clock, ROUTES, people_of(settings, clock))
    return app


def _plans(
    fleet: Fleet,
    admission: BudgetAdmission,
    candidates: CandidateBuilder,
    learned: LearnedEstimates,
    failsafe: DegradedDecider,
    in_force: ActivePolicies,
) -> Callable[[Settings, str], RoutePlanner]:
    """Return a function that makes a planner from settings and a policy version."""

    def plans_for(rules: Settings, version: str) -> RoutePlanner:
        routes = RouteCache(rules, fleet, admission, in_force.overrides)
        picture_tokens = rules.server.picture_tokens
        made = RoutePlanner(
            version, routes, candidates, learned, failsafe, picture_tokens=picture_tokens
        )
        made.inspects = any(rule.content for rule in rules.policies)
        return made

    return plans_for


def _open_records(
    settings: Settings, runtime: Runtime, worker: int
) -> tuple[JournalWriter, BudgetClient, JournalGate]:
    """Open the worker's journal, its budget client and its journal gate."""
    journal = _journal(settings, runtime, worker)
    return journal, _desk(runtime, worker, journal), JournalGate(journal, runtime.run_dir)


def _metrics(
    settings: Settings, runtime: Runtime, exposition: MetricsExposition, estimates: HostEstimates
) -> RequestMetrics:
    models, targets = _names(settings, runtime)
    metrics = RequestMetrics(exposition.registry, models=models, targets=targets)
    metrics.estimators.watch(estimates.statistics)
    return metrics


def _names(settings: Settings, runtime: Runtime) -> tuple[frozenset[str], frozenset[str]]:
    """Return the models and the targets that get their own metric series."""
    return frozenset(settings.models), frozenset((*runtime.layout.engines, *runtime.layout.apis))


def _observer(
    settings: Settings,
    runtime: Runtime,
    worker: int,
    clock: Clock,
    environ: Mapping[str, str],
    exposition: MetricsExposition,
) -> TraceObserver | None:
    if settings.opentelemetry.endpoint is None:
        return None
    from gateway.telemetry.otel.exporting import make_otel_observer  # noqa: PLC0415  (a library for this alone)

    instance, names = f"{runtime.host}/{worker}", _names(settings, runtime)
    telemetry, registry = settings.opentelemetry, exposition.registry
    return make_otel_observer(telemetry, instance, names, clock, environ, registry)


@asynccontextmanager
async def _beside(*chores: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run background tasks inside the block; a failed one ends the block and is logged."""
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(chore) for chore in chores]
            yield
            for chore in running:
                chore.cancel()
    except Exception:
        log.exception("a background task failed: this worker ends")
        raise


def _in_force(settings: Settings, read: ReadPolicies | None) -> ActivePolicies:
    """Return the policies that the worker starts with."""
    stored = None if read is None else read()
    rules = rules_of(settings, stored)
    if rules.fault is not None:
        log.warning("the stored policies do not fit and are not used error=%s", rules.fault)
    return ActivePolicies(rules.settings, rules.version, 0 if stored is None else stored.number)


def _candidates(
    settings: Settings,
    board: SharedLoadTable,
    ledger: LedgerReaders,
    experience: TargetStats,
    prefixes: PrefixIndex,
    learned: LearnedEstimates,
) -> CandidateBuilder:
    stale_s = settings.telemetry.stale_s
    return CandidateBuilder(
        LiveTargetViews(board, stale_s, experience.engines.is_shunned),
        ledger.prices,
        stale_s=stale_s,
        limits=model_limits(),
        caches=PromptCaches(prefixes, learned.cached),
        overruns=TargetOverruns(learned.target_output, learned.target_prompts),
    )


def _inference_api(
    dispatcher: Dispatcher,
    ledger: LedgerReaders,
    metrics: RequestMetrics,
    settings: Settings,
    fleet: Fleet,
) -> InferenceApi:
    clock, ids = dispatcher.clock, RequestIds()
    made = InferenceApi(dispatcher, ledger.keys, metrics, settings.server, clock, ids)
    made.passes_whole = fleet.speaks_messages
    return made


def _journal(settings: Settings, runtime: Runtime, worker: int) -> JournalWriter:
    return JournalWriter(
        runtime.journal_dir, f"worker-{worker}",
        segment_bytes=settings.ledger.journal_segment_bytes,
        limit_bytes=settings.ledger.journal_limit_bytes,
    )  # fmt: skip


def _desk(runtime: Runtime, worker: int, journal: JournalWriter) -> BudgetClient:
    name = f"worker-{worker}"
    return BudgetClient(runtime.run_dir / DESK_SOCKET, worker=name, journal=journal.name)


def readiness(hot: InferenceApi, desk: BudgetClient, recording: JournalGate) -> list[str]:
    """Return what is missing before requests can be served and recorded."""
    missing = []
    if hot.draining:
        missing.append("draining")
    if not desk.connected:
        missing.append("ledger writer")
    if not recording.is_open():
        missing.append(JOURNAL)
    if (stalled := recording.stalled()) is not None:
        missing.append(stalled)
    return missing


async def _aclose(*served: AsyncClosable) -> None:
    for part in served:
        await part.aclose()


class Closable(Protocol):
    def close(self) -> None: ...


def _close(dispatcher: Dispatcher, *parts: Closable) -> None:
    """Close the parts, and the dispatcher's optional parts, one after the other."""
    for part in (
        dispatcher.limits, dispatcher.drawing, dispatcher.observer, dispatcher.cache, *parts,
    ):  # fmt: skip
        if part is not None:
            part.close()


async def _wait_for_requests(
    served: Sequence[InferenceApi], metrics: RequestMetrics, stored: StoredParts
) -> None:
    """Wait until cancelled requests have written their ends, before the journal is closed."""
    await stored.end_background()
    try:
        async with asyncio.timeout(LAST_WORDS_S):
            while any(hot.in_flight for hot in served):  # noqa: ASYNC110  (counted by the requests themselves)
                await asyncio.sleep(BEAT_S / 10)
    except TimeoutError:
        pass
    metrics.flush()


def _render_metrics(exposition: MetricsExposition, metrics: RequestMetrics) -> bytes:
    metrics.flush()
    metrics.estimators.look()
    return exposition.render()


async def _beat(
    board: SharedLoadTable, worker: int, clock: Clock, metrics: RequestMetrics, gate: JournalGate
) -> None:
    while True:
        gate.is_open()
        gate.show_owed(metrics.endings_waiting, metrics.endings_lost)
        board.record_heartbeat(worker, clock.now_s())
        await next_tick(BEAT_S if metrics.flush() else IDLE_BEAT_S)

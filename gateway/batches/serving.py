"""Batch routes of a worker: the client API and the endpoint for lines."""

from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fastapi import APIRouter

from backends.providers import PROVIDER_KINDS
from gateway.batches.authority import LineTicket, load_authority
from gateway.batches.batch_database import BatchDatabase
from gateway.batches.batch_maker import BatchMaker
from gateway.batches.batch_spill_policy import batch_providers
from gateway.batches.batches_api import batches_router
from gateway.batches.files_api import files_router
from gateway.batches.line_endpoint import (
    LineAdmission,
    LineEndpoint,
    LineLoadTracker,
    LinePreemptor,
    TicketKeys,
    UncountedRequests,
    request_ids,
)
from gateway.batches.message_batches_api import MessageBatches, message_batches_router
from gateway.batches.planner import (
    LinePlanner,
    drop_latency_targets,
    priority_pools,
    tightest_slo_of_pools,
)
from gateway.batches.provider_line_planner import ProviderLinePlanner
from gateway.batches.wake import wake_runner
from gateway.clock import Clock
from gateway.config.settings import Settings, resolve_model
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_views import engine_state
from gateway.request.active_policies import ActivePolicies, PolicyDerived
from gateway.request.dispatch import Dispatcher
from gateway.request.inference_api import InferenceApi
from gateway.request.plan import PlannerProtocol
from gateway.runtime import Runtime
from ledger.database import make_engine
from ledger.identity.keys import KeyRing
from router.idle import TightestSlo
from router.types import EngineState

PlansFor = Callable[[Settings, str], PlannerProtocol]


@dataclass(frozen=True, slots=True)
class BatchDependencies:
    """Dependencies from the worker's composition root; `worker` is its row of the load table."""

    settings: Settings
    runtime: Runtime
    board: SharedLoadTable
    worker: int
    keys: KeyRing
    clock: Clock

    @property
    def speaks_messages(self) -> bool:
        """Return whether a target accepts Anthropic's Messages format unchanged."""
        providers = self.settings.providers.values()
        return any(PROVIDER_KINDS[provider.kind].speaks_messages for provider in providers)


@dataclass(frozen=True, slots=True)
class BatchRoutes:
    """Routes and tasks for batches; all empty if batches are off."""

    routers: tuple[APIRouter, ...] = ()
    entrance: LineEndpoint | None = None
    stored: BatchDatabase | None = None
    making_room: LinePreemptor | None = None

    @property
    def served(self) -> list[InferenceApi]:
        """Return the inference APIs that serve lines."""
        return [] if self.entrance is None else [self.entrance.hot, self.entrance.onward]

    def chores(self) -> list[Coroutine[Any, Any, None]]:
        """Return the background coroutines."""
        sweeps = [api.sweep() for api in self.served]
        return sweeps if self.making_room is None else [*sweeps, self.making_room.run()]

    async def aclose(self) -> None:
        if self.stored is not None:
            await self.stored.aclose()


def serve_batches(
    host: BatchDependencies, dispatcher: Dispatcher, in_force: ActivePolicies, plans_for: PlansFor
) -> BatchRoutes:
    """Build the batch routes; `plans_for` makes a planner under other settings."""
    settings, clock = host.settings, host.clock
    if not settings.batches.enabled:
        return BatchRoutes()
    stored = BatchDatabase(make_engine(host.runtime.ledger_url))

    flights = LineLoadTracker(host.board, host.worker)
    promises = in_force.hold(lambda rules, _: tightest_slo_of_pools(rules))
    lines = replace(dispatcher, flights=flights, limits=None, cache=None)
    entrance = _entrance(host, lines, in_force, plans_for)
    wake = partial(wake_runner, host.runtime.run_dir)
    most = settings.batches.team_batches
    maker = BatchMaker(stored, settings.server, wake, dispatcher.admission, most=most)
    messages = MessageBatches(
        stored, settings, clock, maker, lambda model: resolve_model(settings, model) is not None
    )
    return BatchRoutes(
        (
            files_router(stored, settings, clock),
            batches_router(stored, clock, maker, server=settings.server),
            message_batches_router(messages),
        ),
        entrance,
        stored,
        _make_preemptor(host, entrance.hot, flights, promises),
    )


def _make_preemptor(
    host: BatchDependencies,
    hot: InferenceApi,
    flights: LineLoadTracker,
    promises: PolicyDerived[dict[str, TightestSlo]],
) -> LinePreemptor:
    board, clock = host.board, host.clock
    stale_s = host.settings.telemetry.stale_s

    def state(row: int) -> EngineState:
        published, loads = board.published(row), board.loads(row)
        return engine_state(published, loads, clock.now_s(), stale_s, life=board.life(row))

    def promised(row: int) -> TightestSlo:
        return promises.value.get(host.runtime.engines[row].pool, TightestSlo())

    return LinePreemptor(hot, flights, state, promised)


def _entrance(
    host: BatchDependencies, dispatcher: Dispatcher, in_force: ActivePolicies, plans_for: PlansFor
) -> LineEndpoint:
    settings = host.settings
    ticket: ContextVar[LineTicket] = ContextVar("ticket")

    def planner(rules: Settings, version: str) -> PlannerProtocol:
        plans = plans_for(drop_latency_targets(rules), version)
        return LinePlanner(plans, tightest_slo_of_pools(rules), ticket, priority_pools(rules))

    lines = replace(
        dispatcher,
        admission=LineAdmission(dispatcher.admission.desk),
        demanded=None,
        plans=in_force.hold(planner),
    )

    def api(asked: Dispatcher) -> InferenceApi:
        keys, server = TicketKeys(host.keys, ticket), settings.server
        return InferenceApi(
            asked, keys, UncountedRequests(), server, host.clock, request_ids(ticket)
        )

    plans = in_force.hold(lambda rules, version: plans_for(drop_latency_targets(rules), version))
    onward = ProviderLinePlanner.like(lines, plans=plans, providers=batch_providers(settings))
    authority = load_authority(host.runtime.run_dir)
    hot = api(lines)
    hot.passes_whole = host.speaks_messages  # providers' batches do not take Messages
    return LineEndpoint(hot, api(onward), authority, ticket, host.clock)

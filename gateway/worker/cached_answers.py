"""Creation of a worker's response cache."""

from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.fleet.candidates import CandidateBuilder
from gateway.fleet.fleet import Fleet
from gateway.request.active_policies import ActivePolicies
from gateway.request.admission import BudgetAdmission
from gateway.request.cache.answer_memory import ANSWERS_FD, AnswerMemory
from gateway.request.cache.cache_scopes import CacheScopes, scopes_version
from gateway.request.cache.response_cache import ResponseCache
from gateway.request.routes import RouteCache
from gateway.telemetry.metrics.requests import RequestMetrics
from gateway.telemetry.metrics.response_cache import CacheMetrics
from ledger.journals.journal import JournalWriter
from router.token_ratio import TokenRatio


class CacheParts(NamedTuple):
    """Parts of a worker that the response cache uses."""

    journal: JournalWriter
    fleet: Fleet
    admission: BudgetAdmission
    candidates: CandidateBuilder
    ratio: TokenRatio
    in_force: ActivePolicies
    metrics: RequestMetrics


def open_cache(
    settings: Settings,
    worker: int,
    environ: Mapping[str, str],
    parts: CacheParts,
    clock: Clock,
    registry: CollectorRegistry | None,
) -> ResponseCache | None:
    """Return the response cache, or None if it is off.

    Without the shared memory of the parent, the cache uses private memory.
    """
    section = settings.response_cache
    if not section.enabled:
        return None
    given = environ.get(ANSWERS_FD)
    memory = AnswerMemory(
        None if given is None else int(given), section.bytes, settings.server.workers, worker
    )

    def scopes(rules: Settings, version: str) -> CacheScopes:
        overrides = parts.in_force.overrides
        return CacheScopes(
            scopes_version(rules, version, overrides),
            parts.candidates.prices_version,
            RouteCache(rules, parts.fleet, parts.admission, overrides),
            parts.ratio,
            picture_tokens=rules.server.picture_tokens,
        )

    return ResponseCache(
        memory,
        section,
        parts.journal,
        CacheMetrics(registry, parts.metrics.count),
        clock,
        parts.in_force.hold(scopes),
    )

"""Route contexts: facts that all requests of one key for one model share, computed once.

Settings are read at start, so they do not change while the process runs. Identities do: a route is
cached for one identity object, so a key that was revoked, moved or restricted finds no older route.
Prices and budgets are refreshed on their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from backends.base import Deadlines
from gateway.auth import allowed
from gateway.clock import Clock
from gateway.config.schema_models import ModelTimeoutsSection
from gateway.config.settings import ModelSection, Settings, TimeoutsSection, resolve_model
from gateway.errors import RequestError
from gateway.fleet.fleet import Fleet, Target, later_prices
from gateway.policies.overrides import barred
from gateway.policies.policy_match import PolicyChain
from gateway.policies.rules import RuleSet
from gateway.request.admission import BudgetAdmission, BudgetHeadroom
from gateway.request.model_retirement import ModelRetirement, find_retirement
from ledger.identity.keys import Identity
from ledger.overrides import Override
from router.policy import tighten
from router.stages import StageCause
from router.types import Residency

_FIRST = frozenset({StageCause.ANY})
ROUTES_LIMIT = 4096  # the oldest is dropped first; clients choose model names


class RouteDeadlines(NamedTuple):
    """Deadlines of a stream and of an answer in one piece; `total_s` covers all tries."""

    stream: Deadlines
    whole: Deadlines
    total_s: float | None

    def of(self, *, whole: bool) -> Deadlines:
        """Return the deadlines of a stream, or of an answer in one piece (`whole`)."""
        return self.whole if whole else self.stream


@dataclass(frozen=True, slots=True)
class RouteContext:
    """The facts of one key and model. `model` is the logical name, with aliases resolved.

    Requests of one `learning_key` share learned estimates.
    """

    identity: Identity
    model: str
    compare_with: tuple[str, ...]
    is_sticky: bool
    chain: PolicyChain
    targets: tuple[Target, ...]  # all targets of the stage
    rooms: BudgetHeadroom
    residency: Residency
    learning_key: tuple[str, str]
    salt: str | None  # isolates the tenant's prefix cache on own engines
    stage: int = 1  # of the model's targets; `after` says when it is due
    after: frozenset[StageCause] = _FIRST
    later: tuple["RouteContext", ...] = ()  # the later stages
    valued_by: tuple[str, ...] = ()  # prices of the APIs of later stages
    deadlines: RouteDeadlines | None = None  # of the model, if it states any
    retirement: ModelRetirement | None = None  # of the requested name

    @property
    def is_staged(self) -> bool:
        """Return whether the model has several stages."""
        return self.stage > 1 or bool(self.later)


class RouteCache:
    def __init__(
        self,
        settings: Settings,
        fleet: Fleet,
        admission: BudgetAdmission,
        overrides: Sequence[Override] = (),
    ) -> None:
        """Create the cache for the active `overrides`; a change of them needs a new cache."""
        self._settings = settings
        self._overrides = overrides
        self._fleet = fleet
        self._admission = admission
        self._rules = RuleSet(settings)
        self._known: dict[tuple[str, str], RouteContext] = {}  # by requested model and key

    def find(self, asked: str, identity: Identity, clock: Clock | None = None) -> RouteContext:
        """Return the first stage of the model that a key requests.

        Raises `RequestError` 404 for a model that is unknown or, by the clock, retired; 403 for one
        that the key may not use.
        """
        place = asked, identity.key_id
        route = self._known.get(place)
        if route is None or route.identity is not identity:
            route = self._make_route(asked, identity)
            if place not in self._known and len(self._known) >= ROUTES_LIMIT:
                del self._known[next(iter(self._known))]
            self._known[place] = route
        if route.retirement is not None and clock is not None:
            route.retirement.check_served(clock.wall_us())
        return route

    def _make_route(self, asked: str, identity: Identity) -> RouteContext:
        found = resolve_model(self._settings, asked)
        if found is None:
            raise RequestError(
                "no_model",
                f"The model `{asked}` does not exist. `GET /v1/models` lists all models of "
                "this key.",
                param="model",
            )
        name, model = found
        if not allowed(identity.models, asked, name):
            raise RequestError(
                "forbidden",
                f"This key may not use the model `{asked}`. Name a model of `GET "
                "/v1/models`, or use another key.",
                param="model",
            )
        route: RouteContext | None = None
        retirement = find_retirement(self._settings, asked)
        stages = self._fleet.stages(name, model)
        for number in range(len(stages), 0, -1):
            route = self._make_stage((name, model), identity, stages, number, route)
            route = replace(route, retirement=retirement)
        assert route is not None, "a model has at least one stage"
        return route

    def _make_stage(
        self,
        resolved: tuple[str, ModelSection],
        identity: Identity,
        stages: tuple[tuple[Target, ...], ...],
        number: int,
        later: RouteContext | None,
    ) -> RouteContext:
        """Return stage `number` of a model; `later` is the stage after it."""
        (name, model), targets = resolved, stages[number - 1]
        stated = model.then[number - 2] if number > 1 else None
        behind = () if later is None else (later, *later.later)
        return RouteContext(
            identity=identity,
            model=name,
            compare_with=model.compare_with,
            is_sticky=model.sticky == "session",
            chain=PolicyChain(
                self._rules.entries(name, identity.team_id),
                model,
                targets,
                barred(self._overrides, name, targets),
            ),
            targets=targets,
            rooms=self._admission.rooms(identity, name, targets),
            residency=tighten(Residency(model.residency), Residency(identity.residency)),
            learning_key=(name, identity.team_id),
            salt=cache_salt(identity),
            stage=number,
            after=_FIRST if stated is None else frozenset(map(StageCause, stated.causes)),
            later=behind,
            valued_by=later_prices(model, stages, number - 1),
            deadlines=_deadlines(
                self._settings.server.timeouts,
                model.timeouts,
                None if stated is None else stated.timeouts,
            ),
        )


def _deadlines(
    usual: TimeoutsSection, model: ModelTimeoutsSection | None, stage: ModelTimeoutsSection | None
) -> RouteDeadlines | None:
    """Return the deadlines of stage, model or server, in this order; `None` if only server."""
    stated = [limits for limits in (stage, model) if limits is not None]
    if not stated:
        return None

    def first(name: str) -> float | None:
        return next((own for own in (getattr(limits, name) for limits in stated) if own), None)

    idle_s = first("idle_s") or usual.idle_s
    return RouteDeadlines(
        Deadlines(usual.connect_s, first("head_s") or usual.head_s, idle_s),
        Deadlines(usual.connect_s, first("whole_s") or usual.whole_s, idle_s),
        first("total_s"),
    )


def cache_salt(identity: Identity) -> str | None:
    """Return the tenant's salt in the engine's prefix cache, `None` without isolation.

    Clients cannot send a salt themselves.
    """
    if identity.isolation == "none":
        return None
    owner = identity.org_id if identity.isolation == "org" else identity.team_id
    return sha256(f"{identity.isolation}\x00{identity.org_id}\x00{owner}".encode()).hexdigest()[:32]

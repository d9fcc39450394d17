"""Exact encoding of a decision's inputs as plain values, so that it can be repeated.

`encode` returns tuples of strings, numbers and `None`, which the gateway writes as msgpack;
`decode` returns the request, policy and candidates. Numbers stay integers or 64-bit floats.
`packed` is the short form for people and queries. Fields are in the order of their classes. A class
may gain fields with defaults at its end, and older inputs are read with those defaults. Removing or
moving a field requires a new version (a test compares the classes with this version).
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from router.prompts import PromptPrefix, RequestUnits
from router.reasons import Reason, Rejection
from router.request_kinds import RequestKind
from router.types import (
    ApiState,
    Candidate,
    EngineState,
    Feature,
    InfeasibleAction,
    OutputMoments,
    Policy,
    Preference,
    PrefillOption,
    Residency,
    RoutingRequest,
    Slo,
    StepModel,
    TargetHealth,
)

FROZEN_VERSION = 1

Inputs = tuple[RoutingRequest, Policy, tuple[Candidate, ...]]


def names_of(kind: type) -> tuple[str, ...]:
    """Return the names of the constructor fields of a class, in order."""
    return tuple(field.name for field in fields(kind) if field.init)


_REQUEST, _POLICY, _CANDIDATE = map(names_of, (RoutingRequest, Policy, Candidate))
_ENGINE, _API = names_of(EngineState), names_of(ApiState)
_of_request, _of_policy = attrgetter(*_REQUEST), attrgetter(*_POLICY)
_of_engine, _of_api = attrgetter(*_ENGINE), attrgetter(*_API)
_of_option = attrgetter(*names_of(PrefillOption)[2:])
_of_slo, _of_step = attrgetter(*names_of(Slo)), attrgetter(*names_of(StepModel))
_of_output, _of_extent = attrgetter(*names_of(OutputMoments)), attrgetter(*names_of(RequestUnits))
_STEP, _OUTPUT, _EXTENT = _ENGINE.index("step"), _REQUEST.index("output"), _REQUEST.index("extent")
_BARRED, _BEGINNING = _REQUEST.index("barred"), _REQUEST.index("beginning")
_SLO = _POLICY.index("slo")
# How many fields the first inputs of this version have.
_POLICY_LEAST, _CANDIDATE_LEAST, _ENGINE_LEAST, _API_LEAST = 7, 17, 23, 10


class SnapshotParts:
    """Encoder of the parts of a candidate that many requests share; this one caches nothing."""

    __slots__ = ()

    def of(self, candidate: Candidate) -> tuple[Any, Any, Any]:
        """Return features, kinds and state of a candidate."""
        return candidate.features, candidate.kinds, self.state(candidate)

    def state(self, candidate: Candidate) -> Any:
        """Return the current state of a candidate's engine or API; `None` without either."""
        engine, api = candidate.engine, candidate.api
        if engine is None:
            return None if api is None else _of_api(api)
        return self.engine_state(engine)

    def engine_state(self, engine: EngineState) -> list[Any]:
        """Return the current state of an engine."""
        state = list(_of_engine(engine))
        if engine.step is not None:
            state[_STEP] = _of_step(engine.step)
        return state


PLAIN = SnapshotParts()


def encode(
    request: RoutingRequest,
    policy: Policy,
    candidates: Sequence[Candidate],
    parts: SnapshotParts = PLAIN,
) -> tuple[Any, ...]:
    """Return all inputs of `decide` as plain values."""
    asked, rule = list(_of_request(request)), list(_of_policy(policy))
    asked[_OUTPUT] = _of_output(request.output)
    if request.extent is not None:
        asked[_EXTENT] = _of_extent(request.extent)
    if request.barred is not None:
        asked[_BARRED] = dict(request.barred)
    asked[_BEGINNING] = None  # prompts are not stored; candidates carry their cached tokens
    rule[_SLO] = _of_slo(policy.slo)
    return FROZEN_VERSION, asked, rule, [_candidate(candidate, parts) for candidate in candidates]


def _candidate(candidate: Candidate, parts: SnapshotParts) -> tuple[Any, ...]:
    """Return the fields of a candidate in order; `attrgetter` would take three times as long."""
    features, kinds, state = parts.of(candidate)
    own = candidate.engine is not None
    return (
        candidate.name,
        candidate.pool,
        features,
        kinds,
        candidate.context_tokens,
        candidate.internal,
        candidate.expected_pusd,
        candidate.bound_pusd,
        candidate.avoided_pusd,
        candidate.budget_room_pusd,
        candidate.bid_price_pusd_per_s,
        candidate.accepts_salt,
        state if own else None,
        None if own else state,
        candidate.output_cap,
        candidate.top_density_pusd_per_s,
        candidate.density_spread,
        candidate.cached_tokens,
        candidate.cache_saves_pusd,
        *(_roles(candidate, parts) if candidate.is_apart else ()),
    )


def _roles(candidate: Candidate, parts: SnapshotParts) -> tuple[Any, bool, bool]:
    """Return possible prefill engines and the roles; called only for pools with roles."""
    options = [
        (option.name, parts.engine_state(option.engine), *_of_option(option))
        for option in candidate.prefillers
    ]
    return options, candidate.is_apart, candidate.is_spare


def decode(frozen: Sequence[Any]) -> Inputs:
    """Decode the inputs that `encode` wrote. Raises `ValueError` for another version."""
    version, *rest = frozen
    if version != FROZEN_VERSION:
        raise ValueError(f"inputs frozen as version {version} cannot be read")
    asked, rule, candidates = rest
    return (
        _request(asked),
        _policy(rule),
        tuple([_decode_candidate(candidate) for candidate in candidates]),
    )


def _request(frozen: Sequence[Any]) -> RoutingRequest:
    # Inputs encoded before a field was added at the end get its default.
    named = dict(zip(_REQUEST[: len(frozen)], frozen, strict=True))
    extent, preferred, barred = named["extent"], named["preferred"], named["barred"]
    return RoutingRequest(
        **named
        | {
            "kind": RequestKind(named["kind"]),
            "output": OutputMoments(*named["output"]),
            "features": frozenset(map(Feature, named["features"])),
            "residency": Residency(named["residency"]),
            "extent": None if extent is None else RequestUnits(*extent),
            "preferred": None
            if preferred is None
            else Preference(frozenset(preferred[0]), Reason(preferred[1])),
            "beginning": PromptPrefix(),
            "barred": None if barred is None else _decode_barred(barred),
        }
    )


def _decode_barred(frozen: Mapping[str, Sequence[str]]) -> dict[str, Rejection]:
    """Return rejections by candidate name."""
    return {name: (Reason(word), detail) for name, (word, detail) in frozen.items()}


def _named(names: tuple[str, ...], least: int, frozen: Sequence[Any]) -> dict[str, Any]:
    """Return values by field name; missing trailing fields keep their defaults.

    Raises `ValueError` for fewer than `least` values, or more than there are fields.
    """
    if not least <= len(frozen) <= len(names):
        raise ValueError(f"{len(frozen)} members of {least} to {len(names)} cannot be read")
    return dict(zip(names, frozen, strict=False))


def _policy(frozen: Sequence[Any]) -> Policy:
    named = _named(_POLICY, _POLICY_LEAST, frozen)
    return Policy(
        **named
        | {
            "slo": Slo(*named["slo"]),
            "otherwise": InfeasibleAction(named["otherwise"]),
            "residency": Residency(named["residency"]),
            "content": tuple([(kind, action) for kind, action in named.get("content", ())]),
        }
    )


def _decode_candidate(frozen: Sequence[Any]) -> Candidate:
    named = _named(_CANDIDATE, _CANDIDATE_LEAST, frozen)
    engine, api = named["engine"], named["api"]
    return Candidate(
        **named
        | {
            "features": frozenset(map(Feature, named["features"])),
            "kinds": frozenset(map(RequestKind, named["kinds"])),
            "engine": None if engine is None else _state(engine),
            "api": None if api is None else _external(api),
            "prefillers": tuple(
                [
                    PrefillOption(name, _state(state), *rest)
                    for name, state, *rest in named.get("prefillers", ())
                ]
            ),
        }
    )


def _state(frozen: Sequence[Any]) -> EngineState:
    named = _named(_ENGINE, _ENGINE_LEAST, frozen)
    step = named["step"]
    return EngineState(
        **named
        | {
            "health": TargetHealth(named["health"]),
            "step": None if step is None else StepModel(*step),
            "residents": tuple([tuple(resident) for resident in named["residents"]]),
        }
    )


def _external(frozen: Sequence[Any]) -> ApiState:
    named = _named(_API, _API_LEAST, frozen)
    return ApiState(**named | {"health": TargetHealth(named["health"])})

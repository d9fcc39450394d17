"""Compact record of a decision for a ledger row: 8 candidates in 800 bytes.

The record is plain tuples of strings, integers and bytes; the gateway writes them as msgpack.
Figures of a candidate are little-endian 32-bit floats (seven digits) in the units of `NUMBERS`;
unknown and infinite values are NaN. Step models, capacities and prices are versioned elsewhere. For
an API with cached prompt tokens, the tokens and the saving are kept. Preferred and barred targets
are kept by candidate index. Residents of crowded engines follow a candidate (before the engine that
reads its prompt, if another one does), three integers each, so that the KV ratio can be recomputed.
Residents that do not fit are left out; the stored ratio then still shows its value.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan
from operator import attrgetter
from struct import Struct, error
from typing import Any

from router.reasons import REASONS
from router.stages import StageNote
from router.types import Decision, Feature, Policy, PrefillForecast, RoutingRequest, Verdict

PACK_VERSION = 4
PACK_CANDIDATES = 8  # in the order of the decision; how many more there were is kept as a number

NUMBERS = (
    "ttft_ms",
    "tpot_ms",
    "kv_ratio",
    "load",
    "miss_probability",
    "engine_seconds",
    "density_pusd_per_s",
    "objective_pusd",
)
_STATE = (
    "running",
    "waiting",
    "context_tokens",
    "queued_prefill_tokens",
    "kv_used_tokens",
    "kv_promised_tokens",
    "prefix_hit_tokens",
    "age_s",
)
_ADMITTED = (
    "kv_promise_tokens",  # the request's own
    "kv_free_tokens",  # after its admission, all promises kept
)
_OF_ENGINES = (
    *_STATE, *_ADMITTED, "ttft_ms", "tpot_ms", "kv_ratio", "load", "engine_seconds",
    "density_pusd_per_s", "objective_pusd",
)  # fmt: skip
_OF_APIS = ("ttft_ms", "tpot_ms", "miss_probability", "objective_pusd")
_OF_CACHED = (*_OF_APIS, "cached_tokens", "cache_saves_pusd")
_REQUEST = (
    "kind", "prompt_tokens", "prompt_tokens_bound", "max_tokens", "n", "features", "residency",
    "salted", "output_count",
)  # fmt: skip
_POLICY = ("name", "penalty_pusd", "otherwise")
_TERMS = (
    "output_mean", "output_mean_square", "output_p95", "ttft_ms", "tpot_ms", "kv_headroom_floor",
)  # fmt: skip
_OF_REQUEST = 3  # terms; the others are the policy's
_TERMS_FORM, _STATE_FORM, _API_FORM = Struct("<6f"), Struct("<8f"), Struct("<4f")
_CACHED_FORM = Struct(f"<{len(_OF_CACHED)}f")
_ENGINE_FORM = Struct(f"<{len(_OF_ENGINES)}f")
_OF_PREFILLS = PrefillForecast._fields[1:]
_PREFILL_FORM = Struct(f"<{len(_OF_PREFILLS)}f")
_state_of = attrgetter(*_STATE)
_pack_api, _pack_engine = _API_FORM.pack, _ENGINE_FORM.pack
_FEATURES = tuple(Feature)
_BITS = {feature: 1 << place for place, feature in enumerate(_FEATURES)}
_PLACES = {reason: traits.place for reason, traits in REASONS.items()}  # kept instead of the word
_REASONS = tuple(sorted(_PLACES, key=_PLACES.__getitem__))  # by place, without gaps
_STAGE = 8  # place of the stage in what is packed
_WIDEST_FLOAT = 3.4e38
_WIDEST_INTEGER = 2.0**63


def pack_bounded(
    limit_bytes: int,
    encode: Callable[[tuple[Any, ...]], bytes],
    asked: tuple[RoutingRequest, Policy, Decision],
    stage: StageNote | None = None,
) -> bytes:
    """Return the encoded record, or `b""` if it has more than `limit_bytes`.

    A record that is too long is first packed without earlier stages, then without residents. In
    this order, packing again what was unpacked gives the same record.
    """
    whole = encode(pack(*asked, stage=stage))
    if len(whole) > limit_bytes and stage is not None and stage.earlier:
        stage = stage._replace(earlier=())
        whole = encode(pack(*asked, stage=stage))
    if len(whole) > limit_bytes:
        whole = encode(pack(*asked, stage=stage, residents=False))
    return whole if len(whole) <= limit_bytes else b""


def pack(
    request: RoutingRequest,
    policy: Policy,
    decision: Decision,
    *,
    stage: StageNote | None = None,
    residents: bool = True,
) -> tuple[Any, ...]:
    """Return the inputs and verdicts of one decision, followed by its stage if it has one."""
    verdicts = decision.verdicts
    shares = () if request.preferred is None and not request.barred else _shares(request, verdicts)
    return (
        PACK_VERSION,
        (
            request.kind,
            request.prompt_tokens,
            request.prompt_tokens_bound,
            request.max_tokens,
            request.n,
            sum([_BITS[feature] for feature in request.features]),
            request.residency,
            request.salted,
            request.output.count,
            *shares,
        ),
        (policy.name, policy.penalty_pusd, policy.otherwise),
        _terms(request, policy),
        _PLACES[decision.reason],
        len(decision.order),
        max(0, len(verdicts) - PACK_CANDIDATES),
        [_verdict(verdict, residents=residents) for verdict in verdicts[:PACK_CANDIDATES]],
        *(() if stage is None else (_pack_stage(stage),)),
    )


def _pack_stage(stage: StageNote) -> tuple[Any, ...]:
    """Return the stage's number, count and causes, and earlier rejections with reasons."""
    earlier = stage.earlier[:PACK_CANDIDATES]
    told = [word for name, reason in earlier for word in (name, _PLACES[reason])]
    return stage.number, stage.stages, stage.after, told


def stage_of(packed: Sequence[Any]) -> StageNote | None:
    """Return the stage that `pack` stored, or `None` for a model with one stage."""
    if len(packed) <= _STAGE:
        return None
    number, count, after, told = packed[_STAGE]
    pairs = zip(told[::2], told[1::2], strict=True)
    earlier = tuple((name, _REASONS[place]) for name, place in pairs)
    return StageNote(number, count, after, earlier)


def _shares(request: RoutingRequest, verdicts: Sequence[Verdict]) -> tuple[Any, ...]:
    """Return the reason's code, preferred indexes, and index and reason of each barred target."""
    preferred, barred = request.preferred, request.barred or {}
    names = [verdict.candidate.name for verdict in verdicts[:PACK_CANDIDATES]]
    whom = () if preferred is None else preferred.names
    return (
        None if preferred is None else _PLACES[preferred.reason],
        [place for place, name in enumerate(names) if name in whom],
        [
            number
            for place, name in enumerate(names)
            if name in barred
            for number in (place, _PLACES[barred[name][0]])
        ],
    )


def _terms(request: RoutingRequest, policy: Policy) -> bytes:
    output, slo, floor = request.output, policy.slo, policy.kv_headroom_floor
    ttft, tpot = slo.ttft_ms, slo.tpot_ms
    terms = (
        output.mean, output.mean_square, output.p95, nan if ttft is None else ttft,
        nan if tpot is None else tpot, nan if floor is None else floor,
    )  # fmt: skip
    return _pack_figures(_TERMS_FORM, terms)


def _verdict(verdict: Verdict, *, residents: bool) -> tuple[Any, ...]:
    """Return name, reason code, feasibility and figures, then cap and residents if present.

    The length of the figures identifies their format.
    """
    (
        candidate, feasible, reason, _, dense, dollars, ttft, tpot, kv_ratio, load, missed, seconds,
        kv_promise, kv_free, prefill,
    ) = verdict  # fmt: skip
    engine = candidate.engine
    try:
        if (missed if engine is None else load) is None:  # it was not forecast
            figures = _known_of(verdict)
        elif engine is None and candidate.cached_tokens:
            figures = _CACHED_FORM.pack(
                ttft, tpot, missed, dollars, candidate.cached_tokens, candidate.cache_saves_pusd
            )
        elif engine is None:
            figures = _pack_api(ttft, tpot, missed, dollars)
        else:
            figures = _pack_engine(
                engine.running, engine.waiting, engine.context_tokens,
                engine.queued_prefill_tokens, engine.kv_used_tokens, engine.kv_promised_tokens,
                engine.prefix_hit_tokens, engine.age_s, kv_promise, kv_free, ttft, tpot, kv_ratio,
                load, seconds, dense, dollars,
            )  # fmt: skip
    except (error, OverflowError):  # something is not known, or does not fit
        figures = _known_of(verdict)
    followed = engine.residents if residents and engine is not None else ()
    if candidate.output_cap is None and not followed and prefill is None:
        return candidate.name, _PLACES[reason], feasible, figures
    return (
        candidate.name,
        _PLACES[reason],
        feasible,
        figures,
        candidate.output_cap,
        [
            _whole(number)
            for held, final, slack in followed
            for number in (held, final - held, slack)
        ],
        *(() if prefill is None else (_pack_prefill(prefill),)),
    )


def _pack_prefill(prefill: PrefillForecast) -> tuple[str, bytes]:
    """Return the name of the engine that reads the prompt, and its figures."""
    return prefill.name, _pack_figures(_PREFILL_FORM, prefill[1:])


def _known_of(verdict: Verdict) -> bytes:
    """Return the figures of a candidate without a complete forecast."""
    engine = verdict.candidate.engine
    if engine is None:
        if verdict.miss_probability is None:
            return b""
        return _pack_figures(_API_FORM, [getattr(verdict, name) for name in _OF_APIS])
    state = _state_of(engine)
    if verdict.load is None:
        return _pack_figures(_STATE_FORM, state)
    told = [getattr(verdict, name) for name in _OF_ENGINES[len(_STATE) :]]
    return _pack_figures(_ENGINE_FORM, [*state, *told])


def _pack_figures(form: Struct, figures: Sequence[float | None]) -> bytes:
    if inf not in figures and -inf not in figures:
        try:
            return form.pack(*figures)
        except (error, OverflowError):  # something is not known, or does not fit
            pass
    return form.pack(*map(_fit_number, figures))


def _fit_number(number: float | None) -> float:
    return number if number is not None and -_WIDEST_FLOAT < number < _WIDEST_FLOAT else nan


def _whole(number: float) -> int:
    return round(number) if 0 <= number < _WIDEST_INTEGER else 0


def unpack(packed: Sequence[Any]) -> dict[str, Any]:
    """Return the contents of a packed record, with names, in the units of the names."""
    version, *rest = packed
    if version != PACK_VERSION:
        raise ValueError(f"a decision packed as version {version} cannot be read")
    asked, rule, terms, reason, tried, omitted, verdicts = rest[: _STAGE - 1]
    named = _read(_TERMS_FORM, _TERMS, terms)
    asked, shares = asked[: len(_REQUEST)], asked[len(_REQUEST) :]
    request = dict(zip(_REQUEST, asked, strict=True))
    bits = request["features"]
    request["features"] = [
        feature.value for place, feature in enumerate(_FEATURES) if bits >> place & 1
    ]
    if shares:
        request |= _unpack_shares(shares, [verdict[0] for verdict in verdicts])
    return {
        "request": request | {name: named[name] for name in _TERMS[:_OF_REQUEST]},
        "policy": dict(zip(_POLICY, rule, strict=True))
        | {name: named[name] for name in _TERMS[_OF_REQUEST:]},
        "reason": _REASONS[reason].value,
        "tried": tried,
        "omitted": omitted,
        "candidates": [_unpack_verdict(verdict) for verdict in verdicts],
        **_unpack_stage(stage_of(packed)),
    }


def _unpack_stage(stage: StageNote | None) -> dict[str, Any]:
    if stage is None:
        return {}
    earlier = [{"name": name, "reason": reason.value} for name, reason in stage.earlier]
    told = {"number": stage.number, "count": stage.stages, "after": stage.after}
    return {"stage": {**told, "earlier": earlier}}


def unpack_request(packed: Sequence[Any]) -> dict[str, Any]:
    """Return the request part of a packed record by name; features stay a bit mask.

    Raises `ValueError` for another format version.
    """
    if not packed or packed[0] != PACK_VERSION:
        raise ValueError("a decision packed as another version cannot be read")
    return dict(zip(_REQUEST, packed[1], strict=False))


def _unpack_shares(shares: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Return `preferred` as [names, reason] and `barred` as name to reason, each if present."""
    word, whom, barred = shares
    found: dict[str, Any] = {}
    if word is not None:
        found["preferred"] = [[names[place] for place in whom], _REASONS[word].value]
    if barred:
        pairs = zip(barred[::2], barred[1::2], strict=True)
        found["barred"] = {names[place]: _REASONS[reason].value for place, reason in pairs}
    return found


def _unpack_verdict(packed: Sequence[Any]) -> dict[str, Any]:
    name, reason, feasible, figures, *rest = packed
    cap, followed, *apart = rest or (None, ())
    named: dict[str, float | None] = dict.fromkeys(NUMBERS)
    engine: dict[str, Any] | None = None
    cached: dict[str, Any] = {}
    if len(figures) in (_STATE_FORM.size, _ENGINE_FORM.size):
        forecast = len(figures) == _ENGINE_FORM.size
        form, names = (_ENGINE_FORM, _OF_ENGINES) if forecast else (_STATE_FORM, _STATE)
        known = _read(form, names, figures)
        engine = {name: known.get(name) for name in (*_STATE, *_ADMITTED)}
        engine["residents"] = [
            {"held_tokens": held, "final_tokens": held + growth, "slack_tokens": slack}
            for held, growth, slack in zip(
                followed[::3], followed[1::3], followed[2::3], strict=True
            )
        ]
    elif len(figures) == _CACHED_FORM.size:
        known = _read(_CACHED_FORM, _OF_CACHED, figures)
        cached = {name: known[name] for name in _OF_CACHED[len(_OF_APIS) :]}
    else:
        known = _read(_API_FORM, _OF_APIS, figures) if figures else {}
    named |= {name: known[name] for name in NUMBERS if name in known}
    return {
        "name": name, "reason": _REASONS[reason].value, "feasible": feasible, **named,
        "engine": engine, "output_cap_tokens": cap, **cached, **_unpack_prefill(apart),
    }  # fmt: skip


def _unpack_prefill(packed: Sequence[Any]) -> dict[str, Any]:
    if not packed:
        return {}
    ((name, figures),) = packed
    return {"prefill": {"name": name, **_read(_PREFILL_FORM, _OF_PREFILLS, figures)}}


def _read(form: Struct, names: Sequence[str], figures: bytes) -> dict[str, float | None]:
    """Return the figures by name: seven digits, as 32 bits hold; whole numbers as integers."""
    read: dict[str, float | None] = {}
    for name, number in zip(names, form.unpack(figures), strict=True):
        if not isfinite(number):
            read[name] = None
        else:
            read[name] = int(number) if number.is_integer() else float(f"{number:.7g}")
    return read

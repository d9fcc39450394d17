"""What a decision saw and said, small enough for a ledger row: 8 candidates in 800 bytes.

Plain tuples of integers and words (the gateway writes them as msgpack): latencies in 0.1 ms,
ratios in thousandths, engine time in microseconds, money in pico-USD. Step models, capacities and
prices are not in it: they are versioned elsewhere. `unpack` gives the names back.

The residents of crowded engines come last in an engine's state, three numbers each, so that its KV
figure can be computed again. Where they do not fit, the figure itself still says what it was.
A candidate's cap on the answer comes last, and only where money set one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from router.types import Decision, EngineState, Feature, Policy, Request, Verdict

PACK_VERSION = 3
READABLE = (1, 2, 3)  # the first had neither KV figures nor residents, the second no caps
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
_SCALES = (10, 10, 1000, 1000, 1000, 1_000_000, 1, 1)
_STATE = (
    "running",
    "waiting",
    "context_tokens",
    "queued_prefill_tokens",
    "kv_used_tokens",
    "kv_promised_tokens",
    "prefix_hit_tokens",
    "age_ms",
    "kv_promise_tokens",  # the request's own
    "kv_free_tokens",  # after its admission, all promises kept
)
_STATE_OF_1 = 8  # fields
_REQUEST = (
    "kind",
    "prompt_tokens",
    "prompt_tokens_bound",
    "max_tokens",
    "n",
    "features",
    "residency",
    "salted",
    "output_count",
    "output_mean",
    "output_mean_square",
    "output_p95",
)
_POLICY = ("name", "ttft_ms", "tpot_ms", "kv_headroom_floor", "penalty_pusd", "otherwise")
_POLICY_SCALES = (("ttft_ms", 10), ("tpot_ms", 10), ("kv_headroom_floor", 1000))
_FEATURES = tuple(Feature)
_LIMIT = 2.0**63  # the widest integer that msgpack and the ledger's columns hold


def packed_within(
    limit_bytes: int,
    encode: Callable[[tuple[Any, ...]], bytes],
    asked: tuple[Request, Policy, Decision],
) -> bytes:
    """Encoded in at most so many bytes: without residents if need be, or empty, never cut."""
    whole = encode(pack(*asked))
    if len(whole) > limit_bytes:
        whole = encode(pack(*asked, residents=False))
    return whole if len(whole) <= limit_bytes else b""


def pack(
    request: Request, policy: Policy, decision: Decision, *, residents: bool = True
) -> tuple[Any, ...]:
    """The frozen inputs and the verdicts of one decision."""
    output, slo = request.output, policy.slo
    asked = (
        request.kind.value,
        request.prompt_tokens,
        request.prompt_tokens_bound,
        request.max_tokens,
        request.n,
        sum(1 << _FEATURES.index(feature) for feature in request.features),
        request.residency.value,
        int(request.salted),
        output.count,
        _scaled(output.mean, 1),
        _scaled(output.mean_square, 1),
        _scaled(output.p95, 1),
    )
    rule = (
        policy.name,
        _scaled(slo.ttft_ms, 10),
        _scaled(slo.tpot_ms, 10),
        _scaled(policy.kv_headroom_floor, 1000),
        policy.penalty_pusd,
        policy.otherwise.value,
    )
    kept = decision.verdicts[:PACK_CANDIDATES]
    return (
        PACK_VERSION,
        asked,
        rule,
        decision.reason.value,
        len(decision.order),
        len(decision.verdicts) - len(kept),
        tuple(_pack_verdict(verdict, residents=residents) for verdict in kept),
    )


def unpack(packed: Sequence[Any]) -> dict[str, Any]:
    """What `pack` kept, with its names and in the units of the names."""
    version, asked, rule, reason, tried, omitted, verdicts = packed
    if version not in READABLE:
        raise ValueError(f"a decision packed as version {version} cannot be read")
    request = dict(zip(_REQUEST, asked, strict=True))
    bits = request["features"]
    request["features"] = [
        feature.value for place, feature in enumerate(_FEATURES) if bits >> place & 1
    ]
    request["salted"] = bool(request["salted"])
    policy = dict(zip(_POLICY, rule, strict=True))
    for name, scale in _POLICY_SCALES:
        policy[name] = _unscaled(policy[name], scale)
    return {
        "request": request,
        "policy": policy,
        "reason": reason,
        "tried": tried,
        "omitted": omitted,
        "candidates": [_unpack_verdict(verdict) for verdict in verdicts],
    }


def _pack_verdict(verdict: Verdict, *, residents: bool) -> tuple[Any, ...]:
    (
        candidate, feasible, reason, _, ttft, tpot, kv_ratio, load, missed, seconds, dense, dollars,
        kv_promise, kv_free,
    ) = verdict  # fmt: skip
    engine = candidate.engine
    numbers: tuple[int | None, ...] = ()
    if load is not None or missed is not None:  # otherwise it was not forecast
        numbers = (
            _scaled(ttft, 10),
            _scaled(tpot, 10),
            _scaled(kv_ratio, 1000),
            _scaled(load, 1000),
            _scaled(missed, 1000),
            _scaled(seconds, 1_000_000),
            _scaled(dense, 1),
            _scaled(dollars, 1),
        )
    state: tuple[int | None, ...] = ()
    if engine is not None:
        figures = (kv_promise, _scaled(kv_free, 1)) if numbers else (None, None)
        state = (*_pack_state(engine), *figures)
        if residents and engine.residents:
            state += _pack_residents(engine)
    packed = candidate.name, reason.value, int(feasible), numbers, state
    return packed if candidate.output_cap is None else (*packed, candidate.output_cap)


def _pack_state(engine: EngineState) -> tuple[int | None, ...]:
    return (
        engine.running,
        engine.waiting,
        _scaled(engine.context_tokens, 1),
        _scaled(engine.queued_prefill_tokens, 1),
        _scaled(engine.kv_used_tokens, 1),
        _scaled(engine.kv_promised_tokens, 1),
        engine.prefix_hit_tokens,
        _scaled(engine.age_s, 1000),
    )


def _pack_residents(engine: EngineState) -> tuple[int, ...]:
    """What each holds, may still grow by, and may have grown by since it was heard of."""
    return tuple(
        _scaled(number, 1) or 0
        for held, final, slack in engine.residents
        for number in (held, final - held, slack)
    )


def _unpack_verdict(packed: Sequence[Any]) -> dict[str, Any]:
    name, reason, feasible, numbers, state, *cap = packed
    named = dict.fromkeys(NUMBERS)
    for label, number, scale in zip(NUMBERS, numbers, _SCALES, strict=False):
        named[label] = _unscaled(number, scale)
    engine: dict[str, Any] | None = None
    if state:
        known = len(_STATE) if len(state) > _STATE_OF_1 else _STATE_OF_1
        rest = state[known:]
        engine = dict.fromkeys(_STATE) | dict(zip(_STATE, state[:known], strict=False))
        engine["residents"] = [
            {"held_tokens": held, "final_tokens": held + growth, "slack_tokens": slack}
            for held, growth, slack in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        ]
    return {
        "name": name, "reason": reason, "feasible": bool(feasible), **named, "engine": engine,
        "output_cap_tokens": cap[0] if cap else None,
    }  # fmt: skip


def _scaled(number: float | None, scale: int) -> int | None:
    """Rounded to the stored unit; what is not finite or does not fit is not known."""
    if number is None:
        return None
    scaled = number * scale
    return round(scaled) if -_LIMIT < scaled < _LIMIT else None


def _unscaled(number: int | None, scale: int) -> float | None:
    return number if number is None or scale == 1 else number / scale

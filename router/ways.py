"""Three ways for a request in a pool with roles: whole, apart, or straight. Pure.

Whole: one replica reads the prompt and answers. Apart: one engine reads the prompt, its KV moves,
and another one answers. Straight: the decode engine reads the prompt itself. Of the ways that keep
the promise, the one with the least value of engine time is chosen: seconds times their price on
each engine. A second costs the engine's bid price, bent by its predicted load: almost nothing when
idle, the full price when full. Without a promised TTFT, the waiting time counts as load; otherwise
one engine could have a queue while another one is idle.
"""

from collections.abc import Sequence
from dataclasses import replace

from router.filters import forecast_rejection
from router.forecast import Forecast, RequestWork, forecast_engine
from router.objective import UNLIMITED_TTFT_MS
from router.price_curve import GATE_FROM, GATE_FULL
from router.request_kinds import KIND_TRAITS
from router.types import (
    Candidate,
    EngineState,
    Policy,
    PrefillForecast,
    PrefillOption,
    RoutingRequest,
)

IDLE_SHARE = 0.05  # share of its price that a second of an idle engine is worth
LEAST_PRICE = 1.0  # pico-USD a second: engines without a price are compared by their time

WayRow = tuple[float, str, Candidate, Forecast]


def may_go_apart(request: RoutingRequest) -> bool:
    """Return whether another engine may read the prompt: one decoded sequence."""
    return request.n == 1 and request.extent is None and KIND_TRAITS[request.kind].decoded


def choose_way(
    request: RoutingRequest,
    policy: Policy,
    work: RequestWork,
    candidate: Candidate,
    candidates: Sequence[Candidate],
) -> Forecast:
    """Return the forecast of the best way to an answer of this engine: straight or apart."""
    engine = candidate.engine
    assert engine is not None, "only own engines have roles"
    straight = forecast_engine(work, candidate, engine)
    if not candidate.prefillers:
        return _beside_prompts(request, work, candidate, straight, candidates)
    if not may_go_apart(request):
        return straight
    if engine.step is None:
        return straight
    found, barred = [straight], request.barred or {}
    for option in candidate.prefillers:
        if option.name in barred:  # disabled by an operator
            continue
        apart = _forecast_apart(policy, work, candidate, engine, option)
        if apart is not None:
            found.append(apart)
    if len(found) == 1:
        return straight
    return min(found, key=lambda forecast: _rank(policy, work, candidate, forecast))


def order_ways(work: RequestWork, rows: Sequence[WayRow]) -> list[WayRow]:
    """Return own engines in order; in pools with roles by the worth of their way.

    They keep the positions that they have among the others. A place of -1 marks a row whose load is
    not its sort key.
    """
    mine = sorted(
        (row for row in rows if row[2].is_apart),
        key=lambda row: (*_worth(work, row[2], row[3]), row[3].load or 0.0, row[1]),
    )
    chosen = iter(mine)
    return [(-1.0, *next(chosen)[1:]) if row[2].is_apart else row for row in rows]


def way_price(bid_price: float, load: float) -> float:
    """Return the value of a second of an engine at this load, in pico-USD."""
    gate = (load - GATE_FROM) / (GATE_FULL - GATE_FROM)
    share = max(IDLE_SHARE, min(1.0, gate)) * max(1.0, load / GATE_FULL)
    return max(LEAST_PRICE, bid_price) * share


def _beside_prompts(
    request: RoutingRequest,
    work: RequestWork,
    candidate: Candidate,
    alone: Forecast,
    candidates: Sequence[Candidate],
) -> Forecast:
    """Forecast an answer by an engine that also reads prompts for others, with that load.

    While it answers, the promised TPOT keeps it from reading, so the other engines read for
    themselves, and then this engine looks best: a pool would stay so after a short rush. Answers
    with a looser promise than all of those engines' may share the engine with its reading.
    """
    engine, barred = candidate.engine, request.barred or {}
    if engine is None or work.tpot_ms is None:
        return alone
    rate = 0.0
    for other in candidates:
        state = other.engine
        if state is None or not state.ready or other.name in barred:
            continue
        if all(option.name != candidate.name for option in other.prefillers):
            continue
        pace = state.tightest_tpot_ms
        if pace is not None and pace < work.tpot_ms:
            return alone
        rate += state.prefill_rate_tokens_per_s / len(other.prefillers)
    if not rate:
        return alone
    rate += engine.prefill_rate_tokens_per_s
    return forecast_engine(work, candidate, replace(engine, prefill_rate_tokens_per_s=rate))


def _rank(
    policy: Policy, work: RequestWork, candidate: Candidate, forecast: Forecast
) -> tuple[bool, float, float, float, str]:
    """Return the sort key: kept promises first, else least load; then least value, then time."""
    refused = forecast_rejection(policy, candidate, forecast) is not None
    load = forecast.load or 0.0 if refused else 0.0
    name = "" if forecast.prefill is None else forecast.prefill.name
    return (refused, load, *_worth(work, candidate, forecast), name)


def _worth(work: RequestWork, candidate: Candidate, forecast: Forecast) -> tuple[float, float]:
    """Return the value of the engine time that a way takes, and that time; inf if unknown."""
    seconds, prefill, price = (
        forecast.engine_seconds, forecast.prefill, candidate.bid_price_pusd_per_s,
    )  # fmt: skip
    if seconds is None:
        return float("inf"), float("inf")
    if prefill is None:
        load = _felt(work, candidate.engine, forecast.load or 0.0, forecast.ttft_ms)
        return way_price(price, load) * seconds, seconds
    decode = way_price(price, prefill.decode_load) * (seconds - prefill.engine_seconds)
    read = way_price(prefill.bid_price_pusd_per_s, prefill.load) * prefill.engine_seconds
    return decode + read, seconds


def _felt(
    work: RequestWork, engine: EngineState | None, load: float, ttft_ms: float | None
) -> float:
    """Return the load; without a promised TTFT, the waiting time counts as load."""
    if work.ttft_ms is not None or ttft_ms is None or engine is None or engine.step is None:
        return load
    fresh = work.choices * max(1, work.prompt - engine.prefix_hit_tokens)
    reading_s = engine.step.t0_s + engine.step_feedback * (engine.step.d_s * fresh + engine.step_s)
    return max(load, (ttft_ms - 1000.0 * reading_s) / UNLIMITED_TTFT_MS)


def _forecast_apart(
    policy: Policy,
    work: RequestWork,
    candidate: Candidate,
    engine: EngineState,
    option: PrefillOption,
) -> Forecast | None:
    """Forecast one engine reading and another answering; `None` if the reader cannot read now.

    A TPOT limit applies to the reader only for its own answers. The engine that answers computes
    the prompt's last token itself.
    """
    reader = option.engine
    if not reader.ready:
        return None
    reading = _reading(work, reader)
    read = forecast_engine(reading, candidate, reader)
    floor = policy.kv_headroom_floor
    if floor is not None and read.kv_free < floor * reader.kv_capacity_tokens:
        return None
    pace = read.tpot_limit_ms
    if pace is not None and read.tpot_ms is not None and read.tpot_ms > pace:
        return None
    known = max(engine.prefix_hit_tokens, work.prompt - 1)
    answer = forecast_engine(work, candidate, replace(engine, prefix_hit_tokens=known))
    if read.ttft_ms is None or answer.ttft_ms is None:
        return None
    if read.engine_seconds is None or answer.engine_seconds is None:
        return None
    moved = max(0, work.prompt - engine.prefix_hit_tokens)
    transfer_s = option.setup_s + option.token_s * moved
    ttft = read.ttft_ms + 1000.0 * transfer_s + answer.ttft_ms
    # KV held during the transfer blocks that share of the engine for other requests.
    kept_s = transfer_s * work.prompt / reader.kv_capacity_tokens
    held_s = transfer_s * work.prompt / engine.kv_capacity_tokens
    read_s = read.engine_seconds + kept_s
    load = max(read.load or 0.0, answer.load or 0.0)
    limit = answer.ttft_limit_ms
    if limit is not None and ttft > load * limit:
        load = ttft / limit
    prefill = PrefillForecast(
        option.name,
        read.ttft_ms,
        _felt(reading, reader, read.load or 0.0, read.ttft_ms),
        read_s,
        read.kv_promise,
        transfer_s,
        answer.load or 0.0,
        option.bid_price_pusd_per_s,
    )
    return answer._replace(
        ttft_ms=ttft,
        load=load,
        engine_seconds=read_s + answer.engine_seconds + held_s,
        prefill=prefill,
    )


def _reading(work: RequestWork, reader: EngineState) -> RequestWork:
    """Return the prompt part of a request: one token of answer, nothing decoded."""
    prompt, beside_answers = work.prompt, reader.tightest_tpot_ms is not None
    return RequestWork(
        prompt, 1, prompt + 1, 1.0, float(prompt), float(prompt), beside_answers, work.ttft_ms,
        None, work.kv_scale,
    )  # fmt: skip

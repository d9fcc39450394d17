"""The timing of one request by attempt: line, gateway, network, queue, prefill, decode.

The times come from the ledger and from stored samples of engines. Measured times are marked as
such. The time to first token of an own engine is divided by the engine's measured step-time model,
and the unexplained rest is queueing. Times inside an API are unknown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ledger.orm.books import AttemptDecisionRow, AttemptRow, token_column
from ledger.orm.fleet import EngineCapacityRow, EngineSampleRow, RoundTripRow
from ledger.spans import INPUT_TOKENS

REACH_US = 60_000_000  # maximum distance of a sample from the request
FAR_US = 1_000  # a way that is shorter matters to nobody,
FAR_SHARE = 0.1  # nor one that is less of the time to the first token
_ID = re.compile(r"req_([0-9a-f]{12})[0-9a-f]{16}")
MEASURED, MODELLED, REST = "measured", "by its step model", "what is left"


@dataclass(frozen=True, slots=True)
class WaterfallSpan:
    """One step of a request: `what` took `length_us`, `start_us` after the request's arrival.

    `how` is the source of the figure.
    """

    what: str
    start_us: int
    length_us: int
    how: str


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """One attempt from the ledger, with what was known of its engine at that time.

    `prefill_us`: prefill time of its uncached prompt by the step model. `since_us`: when the
    gateway began with it, at the request's arrival or the end of the previous attempt. `line_us`:
    the part of that time in the gateway's line.
    """

    attempt_id: str
    target: str
    status: str | None
    since_us: int
    opened_us: int
    settled_us: int | None
    ttft_us: int | None
    duration_us: int | None
    rtt_us: int | None
    prefill_us: int | None
    line_us: int = 0


@dataclass(frozen=True, slots=True)
class AttemptWaterfall:
    attempt_id: str
    target: str
    status: str | None
    spans: tuple[WaterfallSpan, ...]
    warning: str | None


def is_far(rtt_us: int | None, whole_us: int | None) -> bool:
    """Return whether the round trip to an engine is a large part of a client's wait."""
    if rtt_us is None or not whole_us:
        return False
    return rtt_us >= max(FAR_US, FAR_SHARE * whole_us)


def arrived_us(request_id: str) -> int | None:
    """Return a request's arrival from its id, to the millisecond, or `None` for a foreign id."""
    found = _ID.fullmatch(request_id)
    return None if found is None else int(found[1], 16) * 1000


def spans(facts: AttemptFacts, arrived: int) -> tuple[WaterfallSpan, ...]:
    """Return the steps in order without a gap; of an open attempt only those before it."""
    begun = max(0, facts.since_us - arrived)
    if facts.settled_us is None or facts.duration_us is None:
        return _before(begun, begun + max(0, facts.opened_us - facts.since_us), facts.line_us)
    sent = max(begun, facts.settled_us - facts.duration_us - arrived)
    found = [*_before(begun, sent, facts.line_us)]
    first = facts.duration_us if facts.ttft_us is None else min(facts.ttft_us, facts.duration_us)
    rest, at = first, sent
    parts: list[tuple[str, int, str]] = []
    if facts.rtt_us is not None:
        parts.append(("network", facts.rtt_us, MEASURED))
    if facts.ttft_us is None:
        parts.append(("answer", rest, MEASURED if facts.rtt_us is None else REST))
    elif facts.prefill_us is None:
        parts.append(("first token", rest, MEASURED if facts.rtt_us is None else REST))
    else:
        way = min(first, facts.rtt_us or 0)
        prefill = min(facts.prefill_us, first - way)
        parts += [("queue", first - way - prefill, REST), ("prefill", prefill, MODELLED)]
    for what, most, how in parts:
        length = min(most, rest)
        found.append(WaterfallSpan(what, at, length, how))
        rest, at = rest - length, at + length
    if facts.ttft_us is not None:
        found.append(WaterfallSpan("decode", at, facts.duration_us - first, MEASURED))
    return tuple(found)


def _before(begun: int, sent: int, line_us: int) -> tuple[WaterfallSpan, ...]:
    """Return the time in the gateway: first in the line, if the policy let it wait."""
    stood = min(line_us, sent - begun)
    gateway = WaterfallSpan("gateway", begun + stood, sent - begun - stood, MEASURED)
    return (WaterfallSpan("in line", begun, stood, MEASURED), gateway) if stood else (gateway,)


def warning(facts: AttemptFacts) -> str | None:
    whole = facts.duration_us if facts.ttft_us is None else facts.ttft_us
    if not is_far(facts.rtt_us, whole):
        return None
    assert facts.rtt_us is not None
    assert whole is not None
    words = f"the way to {facts.target} and back takes {facts.rtt_us / 1e3:.1f} ms"
    return f"{words} of {whole / 1e3:.0f} ms: a gateway nearer to it would save that"


def waterfall(connection: Connection, request_id: str) -> list[AttemptWaterfall]:
    """Return every attempt of a request in order; empty if the ledger has none."""
    query = (
        select(
            AttemptRow.attempt_id,
            AttemptRow.target,
            AttemptRow.status,
            AttemptRow.backend,
            AttemptRow.opened_us,
            AttemptRow.settled_us,
            AttemptRow.ttft_us,
            AttemptRow.duration_us,
            INPUT_TOKENS,
            token_column("cached"),
            AttemptDecisionRow.line_us,
        )
        .outerjoin(AttemptDecisionRow, AttemptDecisionRow.attempt_id == AttemptRow.attempt_id)
        .where(AttemptRow.request_id == request_id)
        .order_by(AttemptRow.attempt_no)
    )
    rows = connection.execute(query).all()
    if not rows:
        return []
    since = arrived = arrived_us(request_id) or rows[0].opened_us
    found: list[AttemptWaterfall] = []
    for name, target, status, backend, opened, settled, ttft, duration, read, cached, line in rows:
        rtt = prefill = None
        if backend == "own":
            until = opened if settled is None else settled
            rtt, prefill = _engine(connection, target, (opened, until), read - (cached or 0))
        facts = AttemptFacts(
            name, target, status, since, opened, settled, ttft, duration, rtt, prefill, line or 0
        )
        found.append(AttemptWaterfall(name, target, status, spans(facts, arrived), warning(facts)))
        since = opened if settled is None else settled
    return found


def lines(tries: Sequence[AttemptWaterfall], width: int = 40) -> list[str]:
    """Return the timing as text, with a bar for each step in proportion to the whole."""
    ends = [span.start_us + span.length_us for try_ in tries for span in try_.spans]
    whole = max(ends, default=0)
    found: list[str] = []
    for try_ in tries:
        found.append(f"{try_.target}: {try_.status or 'open'}")
        for span in try_.spans:
            begin, length = (
                round(width * at / whole) if whole else 0 for at in (span.start_us, span.length_us)
            )
            bar = (" " * begin + "#" * max(1, length))[:width].ljust(width)
            took = f"{span.length_us / 1e3:10.1f} ms"
            found.append(f"  {span.what:<12}|{bar}|{took}  {span.how}")
        if try_.warning:
            found.append(f"  {try_.warning}")
    return found


def _engine(
    connection: Connection, engine: str, span: tuple[int, int], uncached: int
) -> tuple[int | None, int | None]:
    """Return the round trip and the prefill time of `uncached` tokens, as known at that time.

    The prefill time is that of the engine's step model.
    """
    sample = connection.execute(
        select(EngineSampleRow.step_feedback_ppm)
        .where(
            EngineSampleRow.engine == engine,
            EngineSampleRow.at_us >= span[0] - REACH_US,
            EngineSampleRow.at_us <= span[1] + REACH_US,
        )
        .order_by(EngineSampleRow.at_us.desc())
        .limit(1)
    ).first()
    rtt = connection.execute(
        select(RoundTripRow.rtt_us)
        .where(RoundTripRow.engine == engine, RoundTripRow.at_us <= span[1] + REACH_US)
        .order_by(RoundTripRow.at_us.desc())
        .limit(1)
    ).scalar_one_or_none()
    model = connection.execute(
        select(EngineCapacityRow.step_d_s, EngineCapacityRow.step_t0_s)
        .where(EngineCapacityRow.engine == engine, EngineCapacityRow.at_us <= span[1])
        .order_by(EngineCapacityRow.at_us.desc(), EngineCapacityRow.id.desc())
        .limit(1)
    ).first()
    feedback = None if sample is None else sample.step_feedback_ppm
    if model is None or model.step_d_s is None or model.step_t0_s is None:
        return rtt, None
    seconds = model.step_t0_s + model.step_d_s * max(0, uncached)
    return rtt, round(1e6 * seconds * (1.0 if feedback is None else feedback / 1e6))

"""Traffic of the ledger as a trace, and measured latencies of the APIs that answered."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import Connection

from backends.simulator.latency import Latency
from gateway.whatif.replay_fleet import ApiLatencySource
from gateway.whatif.traffic import Arrival
from ledger.queries.cache_hits import cache_total
from ledger.queries.traffic import (
    RecordedLength,
    answers_before,
    recorded_requests,
    refused_requests,
)
from ledger.spans import DAY_US, HOUR_US, Scope
from router.packed import unpack_request

SPAN_FORMS = "last-7-days, last-24-hours, or 2026-11-01..2026-11-08 (UTC days, the last excluded)"
LENGTHS_MOST = 4_000  # earlier answers: older ones have faded
LEAST_SEEN = 30  # minimum answers for an API's own latencies
_LAST = re.compile(r"last-(\d{1,4})-(hour|day)s?")
_DAYS = re.compile(r"(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)")


class SpanError(ValueError):
    """A text that is not a time span; the message shows valid ones."""


@dataclass(frozen=True, slots=True)
class LedgerTraffic:
    """Arrivals from `start_us` on; `seen` by API; `refused` counts requests never served.

    `cut` is true if the span has more requests than were read.
    """

    start_us: int
    arrivals: tuple[Arrival, ...]
    seen: Mapping[str, ApiLatencySource]
    refused: int
    cut: bool = False
    lengths: Sequence[RecordedLength] = ()  # of answers before them
    cache_hits: int = 0  # response cache hits, which are no arrivals


def span_of(text: str, now_us: int) -> Scope:
    """Return the time span of a text. Raises `SpanError`."""
    if found := _LAST.fullmatch(text):
        count, unit = int(found[1]), HOUR_US if found[2] == "hour" else DAY_US
        if count:
            return Scope(now_us - count * unit, now_us)
    if found := _DAYS.fullmatch(text):
        try:
            start_us, end_us = (
                int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1e6)
                for day in found.groups()
            )
        except ValueError as error:
            raise SpanError(f"--ledger {text}: {error}; write {SPAN_FORMS}") from error
        if start_us < end_us:
            return Scope(start_us, end_us)
    raise SpanError(f"--ledger {text}: invalid span of time; write {SPAN_FORMS}")


def read_traffic(connection: Connection, scope: Scope, *, most: int | None = None) -> LedgerTraffic:
    """Return the requests of the span, earliest first."""
    rows: dict[str, Arrival] = {}
    logs: dict[str, _Logs] = {}
    start_us: int | None = None
    cut = False
    for asked in recorded_requests(connection, scope):
        if start_us is None:
            start_us = asked.opened_us
        if most is not None and len(rows) >= most and asked.request_id not in rows:
            cut = True
            break
        first = rows.get(asked.request_id)
        at_s = (asked.opened_us - start_us) / 1e6 if first is None else first.at_s
        known = _asked(asked.decision)
        rows[asked.request_id] = Arrival(
            at_s,
            asked.input_tokens,
            asked.output_tokens,
            asked.model,
            asked.team,
            inside=asked.inside,
            cached=asked.cached,
            api=asked.api or "",
            recorded=True,
            max_tokens=known.get("max_tokens"),
            estimate=known.get("prompt_tokens", 0),
            bound=known.get("prompt_tokens_bound", 0),
            content=asked.content,
        )
        if asked.api is not None and asked.ttft_us and asked.duration_us:
            further_us = asked.duration_us - asked.ttft_us
            logs.setdefault(asked.api, _Logs()).add(
                asked.ttft_us,
                further_us / (asked.output_tokens - 1) if asked.output_tokens > 1 else 0,
            )
    seen = {name: log.latency_source for name, log in logs.items() if len(log.ttft) >= LEAST_SEEN}
    refused = refused_requests(connection, scope)
    begins_us = start_us or scope.start_us
    lengths = answers_before(connection, begins_us, most=LENGTHS_MOST)
    hits = cache_total(connection, scope).hits
    return LedgerTraffic(begins_us, tuple(rows.values()), seen, refused, cut, lengths, hits)


def _asked(decision: bytes | None) -> dict[str, Any]:
    """Return the request as the decision knew it; empty if it is no longer stored."""
    if not decision:
        return {}
    try:
        return unpack_request(msgspec.msgpack.decode(decision))
    except (ValueError, TypeError):  # another release wrote it
        return {}


class _Logs:
    """Logarithms of latencies in seconds."""

    def __init__(self) -> None:
        self.ttft: list[float] = []
        self.tpot: list[float] = []

    def add(self, ttft_us: float, tpot_us: float) -> None:
        self.ttft.append(math.log(ttft_us / 1e6))
        if tpot_us > 0:
            self.tpot.append(math.log(tpot_us / 1e6))

    @property
    def latency_source(self) -> ApiLatencySource:
        prior = Latency()
        ttft, tpot = _lognormal(self.ttft), _lognormal(self.tpot)
        if tpot is None:
            tpot = prior.tpot_s, prior.tpot_sigma
        assert ttft is not None, "there are enough"
        return ApiLatencySource(
            Latency(*ttft, *tpot), f"measured: {len(self.ttft)} answers in the ledger"
        )


def _lognormal(logs: list[float]) -> tuple[float, float] | None:
    """Return median in seconds and sigma; `None` with too few values."""
    if len(logs) < LEAST_SEEN:
        return None
    mean = math.fsum(logs) / len(logs)
    return math.exp(mean), math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / len(logs))

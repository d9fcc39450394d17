"""Metrics of one host other than its requests: ledger lag and engine state.

They are read at each scrape from data that the ledger writer and telemetry share with all workers,
so every worker answers the same. The lag grows by itself if the writer stops. For an engine with
stale metrics only its health is shown.
"""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.batches.wake import read_progress
from gateway.clock import Clock
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_views import engine_state
from gateway.table_layout import EngineCell, LoadCell
from ledger.fleet.driftnotes import read_drift
from ledger.writing.lag import read_lag
from router.types import TargetHealth

_HOURLY = 3_600 / 1e12  # pico-USD per second in USD per hour


class HostMetrics(Collector):
    def __init__(
        self, run_dir: Path, board: SharedLoadTable, *, stale_s: float, clock: Clock
    ) -> None:
        self._run_dir = run_dir
        self._board = board
        self._stale_s = stale_s
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        yield from self._ledger()
        yield from self._engines()
        yield GaugeMetricFamily(
            "breakeven_telemetry_silent_seconds",
            "Since when telemetry was not heard of",
            value=self._board.silent_s(self._clock.now_s()),
        )
        if self._board.layout.peers:
            yield GaugeMetricFamily(
                "breakeven_peers_heard",
                "Other hosts whose requests in flight are counted at this moment",
                value=PeerLoadRow(self._board).hosts,
            )
        yield from self._batches()
        yield from self._drift()

    def _ledger(self) -> Iterator[Metric]:
        seconds = GaugeMetricFamily(
            "breakeven_ledger_lag_seconds",
            "Since when all that lay in the journals is in the ledger",
        )
        backlog = GaugeMetricFamily(
            "breakeven_ledger_backlog_bytes", "What the journals hold that the ledger does not"
        )
        away = GaugeMetricFamily(
            "breakeven_ledger_away", "1 while the ledger's database cannot be written"
        )
        aside = CounterMetricFamily(
            "breakeven_ledger_quarantined",
            "Records that the ledger refused and set aside, since its writer began",
        )
        findings = GaugeMetricFamily(
            "breakeven_journal_findings",
            "Places of journals where rows may lack, and quarantined records, of all hosts, that "
            "nobody has acknowledged",
        )
        lacking = GaugeMetricFamily(
            "breakeven_journal_lacking_usd",
            "What rows that lack can have cost at most, where that is known",
        )
        unbounded = GaugeMetricFamily(
            "breakeven_journal_findings_unbounded",
            "Of the findings, those where rows that lack can have cost an unknown amount",
        )
        stalled = GaugeMetricFamily(
            "breakeven_journal_stalled", "1 while a journal of this host cannot be read on"
        )
        lag = read_lag(self._run_dir)
        if lag is not None:
            findings.add_metric([], lag.findings)
            lacking.add_metric([], lag.lacking_pusd / 1e12)
            unbounded.add_metric([], lag.unbounded)
            stalled.add_metric([], float(lag.stalled is not None))
            seconds.add_metric([], max(0.0, (self._clock.wall_us() - lag.applied_us) / 1e6))
            backlog.add_metric([], lag.backlog_bytes)
            away.add_metric([], float(lag.away))
            aside.add_metric([], lag.quarantined)
        yield from (seconds, backlog, away, aside, findings, lacking, unbounded, stalled)

    def _engines(self) -> Iterator[Metric]:
        healthy = GaugeMetricFamily(
            "breakeven_engine_healthy", "1 while requests may go there", labels=["engine"]
        )
        running = GaugeMetricFamily(
            "breakeven_engine_running", "Sequences, its own queue included", labels=["engine"]
        )
        used = GaugeMetricFamily(
            "breakeven_engine_kv_usage_ratio", "KV cache in use", labels=["engine"]
        )
        expected = CounterMetricFamily(
            "breakeven_engine_prefix_expected_tokens",
            "Prompt tokens that were expected in its prefix cache",
            labels=["engine"],
        )
        trust = GaugeMetricFamily(
            "breakeven_engine_prefix_trust",
            "Of the prompt tokens expected in its prefix cache, the share found there lately",
            labels=["engine"],
        )
        reach = GaugeMetricFamily(
            "breakeven_engine_prefix_reach_seconds",
            "How far back its prefix cache reaches, by its own KV events",
            labels=["engine"],
        )
        missed = CounterMetricFamily(
            "breakeven_engine_kv_events_missed",
            "Batches of its KV events that did not arrive; what it dropped since is not known",
            labels=["engine"],
        )
        bid = GaugeMetricFamily(
            "breakeven_engine_bid_price_usd_per_hour",
            "What an hour of it is worth by the last half minute's demand; 0 while all find room",
            labels=["engine"],
        )
        board, now_s = self._board, self._clock.now_s()
        for row, name in enumerate(board.layout.engines):
            published, loads = board.published(row), board.loads(row)
            state = engine_state(published, loads, now_s, self._stale_s, life=board.life(row))
            if state.health is TargetHealth.OFF:
                continue  # stopped on purpose: no alert
            serves = state.health is TargetHealth.HEALTHY
            healthy.add_metric([name], float(serves))
            expected.add_metric([name], loads[LoadCell.PREFIX_EXPECTED_TOTAL])
            if serves:
                running.add_metric([name], state.running)
                trust.add_metric([name], published[EngineCell.PREFIX_TRUST])
                bid.add_metric([name], published[EngineCell.BID_PRICE_PUSD_PER_S] * _HOURLY)
            missed.add_metric([name], published[EngineCell.KV_EVENTS_MISSED])
            if serves and published[EngineCell.FORGOTTEN_S]:
                reach.add_metric([name], now_s - published[EngineCell.FORGOTTEN_S])
            if serves and state.kv_capacity_tokens > 0:
                used.add_metric([name], state.kv_used_tokens / state.kv_capacity_tokens)
        yield from (healthy, running, used, expected, trust, reach, missed, bid)

    def _batches(self) -> Iterator[Metric]:
        opened = GaugeMetricFamily(
            "breakeven_batches_open", "Batches that are not at their end, of all hosts"
        )
        lines = GaugeMetricFamily(
            "breakeven_batch_lines",
            "Lines without an answer: of all hosts, and those in this host's hands",
            labels=["where"],
        )
        ended = CounterMetricFamily(
            "breakeven_batch_tries",
            "Tries of lines by how they ended, since this host's runner began",
            labels=["outcome"],
        )
        progress = read_progress(self._run_dir)
        if progress is not None:
            opened.add_metric([], progress.batches)
            lines.add_metric(["open"], progress.lines)
            lines.add_metric(["here"], progress.out)
            for word in ("ok", "failed", "again"):
                ended.add_metric([word], getattr(progress, word))
        yield from (opened, lines, ended)

    def _drift(self) -> Iterator[Metric]:
        differ = GaugeMetricFamily(
            "breakeven_drift_differ_ratio",
            "Tokens where a pool would write another than its baseline, of those compared lately",
            labels=["pool"],
        )
        limit = GaugeMetricFamily(
            "breakeven_drift_limit_ratio", "How many may differ by its risk class", labels=["pool"]
        )
        drifts = GaugeMetricFamily(
            "breakeven_drift",
            "1 while more differ than may, with 95 % confidence",
            labels=["pool"],
        )
        compared = CounterMetricFamily(
            "breakeven_drift_questions",
            "Live questions asked again of the baseline, by what came of it",
            labels=["pool", "outcome"],
        )
        for name, note in read_drift(self._run_dir).items():
            limit.add_metric([name], note.limit)
            drifts.add_metric([name], float(note.drifts))
            if note.differ is not None:
                differ.add_metric([name], note.differ)
            for word in ("compared", "let_go", "failed"):
                compared.add_metric([name, word], getattr(note, word))
        yield from (differ, limit, drifts, compared)
